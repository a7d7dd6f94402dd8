// The page with 10,000 devices and a study of 1,000,000 trials, made up by the stand-in.
import assert from 'node:assert/strict';
import {assertFits, openPage, signIn, soon} from './browser.mjs';
import {ADMIN, startMock} from './mock.mjs';

function large(body, options = {}) {
  return async ({browser, dist}) => {
    const mock = await startMock({dist, devices: 10_000, trials: 1_000_000});
    const opened = await openPage(browser, mock.url, options);
    try {
      await signIn(opened.page, mock.url, ADMIN);
      await body({...opened, url: mock.url});
      assert.deepEqual(opened.faults, []);
    } finally {
      await opened.context.close();
      mock.close();
    }
  };
}

export const tests = {
  '10,000 devices are paged, searched and filtered': large(async ({page, url}) => {
    await page.goto(url + '/#/devices');
    await page.getByText('1–50 of 10,000').waitFor(soon);
    assert.equal(await page.locator('tbody tr').count(), 50);
    const first = await page.locator('tbody tr').first().textContent();
    await page.getByRole('button', {name: 'Next'}).click();
    await page.getByText('51–100 of 10,000').waitFor(soon);
    await page.waitForFunction((before) => document.querySelector('tbody tr').textContent !== before, first, soon);
    await page.getByRole('button', {name: 'Previous'}).click();
    await page.getByText('1–50 of 10,000').waitFor(soon);
    await page.getByRole('searchbox').fill('xeon-123');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    await page.reload();
    await page.getByRole('link', {name: 'xeon-123'}).waitFor(soon);
    assert.equal(await page.getByRole('searchbox').inputValue(), 'xeon-123');
  }),

  'a map of latencies is read with the arrow keys, and correlations beside it': large(async ({page, url}) => {
    await page.goto(url + '/#/latencies');
    const cell = page.locator('[data-at="0,0"]');
    await cell.waitFor(soon);
    await cell.focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.at), '1,1');
    assert.match(await page.locator('.matrix-about').textContent(), /shufflenet_v2_x0_5.*pi5.*95 % interval.*±/);
    await page.goto(url + '/#/correlations');
    await page.locator('[data-at="0,0"]').waitFor(soon);
    assert.equal(await page.locator('[data-at="0,0"]').textContent(), '1.00');
  }),

  'a study of 1,000,000 trials is drawn from 2,000 of them': large(async ({page, url}) => {
    await page.goto(url + '/#/studies/fashion-resnet');
    await page.getByText('The objective of 2\u202f000 of 1\u202f000\u202f000 trials').waitFor(soon);
    await page.getByRole('img', {name: 'accuracy of 2000 trials, and the best so far'}).waitFor(soon);
    await page.getByRole('img', {name: /^Parameters of 2000 trials/}).waitFor(soon);
  }),

  'full views fit a phone': large(async ({page, url}) => {
    for (const view of ['', 'devices', 'devices/pi4', 'devices/pi4?tab=measurements&measurement=3', 'devices/pi4?tab=pareto', 'devices/pi4?tab=serving', 'models', 'latencies', 'correlations', 'studies', 'studies/fashion-resnet', 'jobs', 'events', 'access']) {
      await assertFits(page, url, '#/' + view);
    }
  }, {viewport: {width: 390, height: 844}, isMobile: true, hasTouch: true}),
};
