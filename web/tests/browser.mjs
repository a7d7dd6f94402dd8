// The browser for tests: Debian's chromium, driven by playwright-core.
import assert from 'node:assert/strict';
import {existsSync} from 'node:fs';
import {chromium} from 'playwright-core';

export const CHROMIUM = process.env.FLEETFIT_CHROMIUM ?? '/usr/bin/chromium';
/** How long to wait for what has to come. */
export const soon = {timeout: 15_000};
export const haveChromium = () => existsSync(CHROMIUM);

export const startBrowser = () => chromium.launch({executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']});

/** A page whose complaints and requests to other hosts are kept. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 860}, reducedMotion: 'reduce', ...options});
  const page = await context.newPage();
  const faults = [];
  const expected = [];
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    if (!expected.some((pattern) => pattern.test(message.text() + ' ' + message.location().url))) faults.push(`${message.type()}: ${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:') && !request.url().startsWith('blob:')) faults.push(`request to ${request.url()}`);
  });
  // The browser itself tells of every answer that is no success; asking who we are before signing in is one.
  expected.push(/401.*\/api\/v1\/session/);
  return {page, context, faults, expected};
}

export async function signIn(page, url, token) {
  await page.goto(url);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', {name: 'Sign in'}).click();
  await page.getByRole('heading', {name: 'Overview'}).waitFor();
}

/** Goes to a view and, once it has loaded all of its parts, fails if it is wider than the screen. */
export async function assertFits(page, url, view) {
  await page.goto(`${url}/${view}`);
  await page.locator('main h1').waitFor(soon);
  // The first of what is left: a view may have several parts that load.
  await page.locator('main .loading').first().waitFor({state: 'detached', ...soon});
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= page.viewportSize().width, `${view} is ${width} wide`);
}
