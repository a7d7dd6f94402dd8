// The page with a small fleet, from an empty store on.
import assert from 'node:assert/strict';
import {Agent, adaptation, measurement, startBackend} from './backend.mjs';
import {assertFits, openPage, signIn, soon} from './browser.mjs';

const VIEWS = ['#/', '#/devices', '#/models', '#/latencies', '#/correlations', '#/studies', '#/jobs', '#/events', '#/access'];

/** Runs a test on a fresh server and page, and fails if the page has complained or called others. */
function fresh(body) {
  return async (setting) => {
    const backend = await startBackend(setting);
    const opened = await openPage(setting.browser, backend.url);
    try {
      await body({...opened, ...backend, backend});
      assert.deepEqual(opened.faults, []);
    } finally {
      await opened.context.close();
      await backend.close();
    }
  };
}

const go = (page, url, view) => page.goto(`${url}/${view}`);
const text = (page, content) => page.getByText(content).first().waitFor(soon);
/** Until what is typed goes into a field. */
const inField = (page) => page.waitForFunction(() => document.activeElement.tagName === 'INPUT', null, soon);

/** Adds a device by the page and gives the token that it has shown. */
async function addDevice(page, url, name) {
  await go(page, url, '#/devices');
  await page.getByRole('button', {name: 'Add a device'}).click();
  await page.getByRole('dialog').getByLabel('Name').fill(name);
  await page.getByRole('button', {name: 'Add', exact: true}).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('shown only now').waitFor(soon);
  return {token: (await dialog.locator('code').first().textContent()).trim(), command: await dialog.locator('code').nth(1).textContent()};
}

async function giveJob(page, button, file, fields = {}) {
  await page.getByRole('button', {name: button, exact: true}).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.locator('input[type=file]').setInputFiles(file);
  await dialog.locator('select').first().locator('option:checked:not([value=""])').waitFor({state: 'attached', ...soon});
  for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label).fill(value);
  await dialog.getByRole('button', {name: button, exact: true}).click();
  await dialog.waitFor({state: 'detached', ...soon});
}

export const tests = {
  'a wrong token is refused in words, the right one signs in, signing out asks again': fresh(async ({page, url, admin, expected}) => {
    expected.push(/401/);
    await page.goto(url);
    await page.getByLabel('Token').fill('not-a-token');
    await page.getByRole('button', {name: 'Sign in'}).click();
    await page.getByRole('alert').waitFor(soon);
    await signIn(page, url, admin);
    await page.reload();
    await page.getByRole('heading', {name: 'Overview'}).waitFor(soon);
    await page.getByRole('button', {name: 'Sign out'}).click();
    await page.getByLabel('Token').waitFor(soon);
  }),

  'every view of an empty fleet says what to do': fresh(async ({page, url, admin}) => {
    await signIn(page, url, admin);
    await text(page, 'Add the first device');
    for (const [view, words] of [['devices', 'fleetfit agent --server'], ['models', 'fleetfit model zoo'], ['latencies', 'fleetfit measure'], ['correlations', 'fleetfit measure --space'], ['studies', 'fleetfit tune'], ['jobs', 'No jobs yet'], ['events', 'Nothing has happened yet']]) {
      await go(page, url, '#/' + view);
      await text(page, words);
    }
  }),

  'a device is added, measured, adapted and followed live': fresh(async ({page, url, admin, modelFile, bundleFile, backend}) => {
    await signIn(page, url, admin);
    const {token, command} = await addDevice(page, url, 'pi4');
    assert.ok(token.length >= 40, token);
    assert.equal(command, `fleetfit agent --server ${url} --token-file TOKEN_FILE --name pi4`);
    await page.getByRole('link', {name: 'Open pi4'}).click();
    await text(page, 'This device has never called');

    const agent = new Agent(url, 'pi4', token);
    await agent.register('<img src="https://example.org/x" onerror="alert(1)"> board');
    await page.locator('.head .is-online').waitFor(soon);
    await text(page, '<img src="https://example.org/x"');

    await giveJob(page, 'Measure', modelFile);
    await page.locator('main .state.is-waiting').waitFor(soon);
    const measuring = await agent.claim();
    assert.equal(measuring.kind, 'measure');
    await page.locator('main .state.is-running').waitFor(soon);
    await agent.finish(measuring, measurement(backend.measured(), measuring, 12.5));
    await page.locator('main .list .state.is-finished').waitFor(soon);
    await page.getByRole('button', {name: 'Measurements'}).click();
    await text(page, '12.5 ms');
    await text(page, '12.4 – 12.6 ms (± 1.0 %)');
    await page.locator('.list td.main a').first().click();
    await text(page, 'Where the time goes');
    const shares = await page.locator('.bars tbody tr').allTextContents();
    assert.deepEqual(shares.map((row) => row.replace(/\s+/g, ' ')), ['Conv 2 ×10.6 ms85.0 %', 'Add 1 ×1.25 ms10.0 %', 'overhead between operators0.625 ms5.0 %']);

    await giveJob(page, 'Adapt', bundleFile, {'Budget, ms': '5'});
    const adapting = await agent.claim();
    await agent.finish(adapting, adaptation);
    await page.getByRole('button', {name: 'Pareto front'}).click();
    await page.getByRole('img', {name: 'Accuracy against latency of 3 subnets; chosen: o-s1'}).waitFor(soon);
    assert.match(await page.locator('tr.chosen').textContent(), /o-s1.*4\.20 ms.*91\.0 %.*chosen/);
    await text(page, 'over budget');

    await giveJob(page, 'Run', bundleFile, {'Budget, ms': '5'});
    const running = await agent.claim();
    await text(page, 'Nothing was served here yet');
    for (const latency_ms of [4.1, 4.2, 6.4]) await agent.event('latency', {latency_ms, budget_ms: 5, subnet: 'o-s1', requests: 200}, running);
    await page.getByRole('img', {name: 'Latency of pi4 against its budget, with 0 switches'}).waitFor(soon);
    await agent.event('switch', {event: 'switch', time: 3.1, from: 'o-s1', to: 's1-s1', ratio: 1.52, switch_us: 4.1, prepared: true, reason: 'over budget'}, running);
    await agent.event('latency', {latency_ms: 3.2, budget_ms: 5, subnet: 's1-s1', requests: 240}, running);
    await page.getByRole('img', {name: 'Latency of pi4 against its budget, with 1 switches'}).waitFor(soon);
    assert.match(await page.locator('.switches tbody tr').first().textContent(), /o-s1s1-s1over budget1\.52 ×/);

    await agent.serve({bundle: 'net.ffb', subnet: 's1-s1', latency_ms: 3.2, budget_ms: 5, accuracy: 0.87}, running);
    await go(page, url, '#/devices');
    await page.locator('tr', {hasText: 'pi4'}).getByText('s1-s1').waitFor(soon);
    await go(page, url, '#/jobs');
    await page.getByRole('button', {name: `Cancel job ${running.id}`}).waitFor(soon);
    await go(page, url, '#/latencies');
    await page.getByRole('cell', {name: '12.5'}).waitFor(soon);
    await go(page, url, '#/access');
    await text(page, 'device.add');
    assert.equal(await page.getByText(token).count(), 0);
  }),

  'a waiting job is cancelled': fresh(async ({page, url, admin}) => {
    await signIn(page, url, admin);
    await addDevice(page, url, 'nuc');
    await go(page, url, '#/devices/nuc');
    await page.getByRole('button', {name: 'Probe'}).click();
    await page.getByRole('dialog').getByRole('button', {name: 'Probe'}).click();
    await go(page, url, '#/jobs');
    await page.getByRole('button', {name: /Cancel job/}).click();
    await page.locator('.state.is-cancelled').waitFor(soon);
  }),

  'a study is watched as its trials come': fresh(async ({page, url, admin, backend}) => {
    await signIn(page, url, admin);
    await backend.startStudy();
    await go(page, url, '#/studies');
    await page.getByRole('link', {name: 'branin'}).click();
    await text(page, 'No trial has a result yet');
    await backend.tellTrials(3);
    await page.getByRole('img', {name: /of 3 trials, and the best so far/}).waitFor(soon);
    await backend.tellTrials(2);
    await page.getByRole('img', {name: /of 5 trials, and the best so far/}).waitFor(soon);
    await page.getByRole('img', {name: /^Parameters of/}).waitFor(soon);
  }),

  'everything works with the keyboard alone': fresh(async ({page, url, admin}) => {
    await page.goto(url);
    await inField(page);
    await page.keyboard.type(admin);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', {name: 'Overview'}).waitFor(soon);
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.getByRole('heading', {name: 'Devices', exact: true}).waitFor(soon);
    await page.waitForFunction(() => document.activeElement.tagName === 'H1', null, soon);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Add a device');
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');
    await page.keyboard.press('Enter');
    await inField(page);
    await page.keyboard.type('kitchen');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByText('shown only now').waitFor(soon);
    await page.keyboard.press('Escape');
    await page.getByRole('link', {name: 'kitchen'}).waitFor(soon);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('/');
    await inField(page);
    await page.keyboard.type('nothing like it');
    await text(page, 'No device is like that');
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('Latency map').waitFor(soon);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({state: 'detached', ...soon});
    const before = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.keyboard.press('t');
    await page.waitForFunction((colour) => getComputedStyle(document.body).backgroundColor !== colour, before);
  }),

  'a viewer sees, but is offered nothing that is for admins': fresh(async ({page, url, admin}) => {
    await signIn(page, url, admin);
    await addDevice(page, url, 'pi4');
    await go(page, url, '#/access');
    await page.getByRole('button', {name: 'New token'}).click();
    await page.getByRole('dialog').getByLabel('Name').fill('wall');
    await page.getByRole('button', {name: 'Make it'}).click();
    const token = (await page.getByRole('dialog').locator('code').first().textContent()).trim();
    await page.getByRole('button', {name: 'Done'}).click();
    await page.getByRole('button', {name: 'Sign out'}).click();
    await page.getByLabel('Token').waitFor(soon);
    await signIn(page, url, token);
    assert.equal(await page.getByRole('link', {name: 'Access'}).count(), 0);
    await go(page, url, '#/devices/pi4');
    await text(page, 'This device has never called');
    assert.equal(await page.getByRole('button', {name: 'Measure', exact: true}).count(), 0);
    await go(page, url, '#/access');
    await text(page, 'There is no such page');
  }),

  'on a phone no view is wider than the screen': fresh(async ({page, url, admin}) => {
    await page.setViewportSize({width: 390, height: 844});
    await signIn(page, url, admin);
    await addDevice(page, url, 'a-device-with-a-name-of-some-length.and-more-than-a-line-of-it-0123456789');
    for (const view of [...VIEWS, '#/devices/a-device-with-a-name-of-some-length.and-more-than-a-line-of-it-0123456789']) {
      await assertFits(page, url, view);
    }
  }),
};
