// Tests of the page in a real browser: node tests/run.mjs [--dist FOLDER] [--fleetfit PROGRAM] [--only PATTERN]
// With a program, against its server; what needs very large fleets, against the stand-in of mock.mjs. Ends with 77 where there is no browser.
import {existsSync, readdirSync} from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const flag = (name) => {
  const at = process.argv.indexOf('--' + name);
  return at < 0 ? undefined : process.argv[at + 1];
};

if (!existsSync(path.join(here, '../node_modules/playwright-core'))) skip('playwright-core is not installed: npm ci');
const {CHROMIUM, haveChromium, startBrowser} = await import('./browser.mjs');
if (!haveChromium()) skip(`there is no browser ${CHROMIUM}: tools/install-packages test`);

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(77);
}

const dist = path.resolve(flag('dist') ?? path.join(here, '../dist'));
const fleetfit = flag('fleetfit') && path.resolve(flag('fleetfit'));
const only = flag('only');
const browser = await startBrowser();
let failed = 0;
for (const file of readdirSync(here).filter((name) => name.endsWith('.test.mjs')).sort()) {
  const {tests} = await import('./' + file);
  for (const [name, test] of Object.entries(tests)) {
    if (only && !name.includes(only)) continue;
    const began = Date.now();
    try {
      await test({browser, dist, fleetfit});
      console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    } catch (error) {
      ++failed;
      console.log(`FAILED  ${name}\n${error.stack ?? error}`);
    }
  }
}
await browser.close();
console.log(failed === 0 ? 'all passed' : `${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
