// Pictures of every view in light, dark and phone width, to be looked at: node tests/shots.mjs FOLDER [VIEW…]
import {mkdirSync} from 'node:fs';
import {openPage, signIn, startBrowser} from './browser.mjs';
import {ADMIN, startMock} from './mock.mjs';

const [folder = 'shots', ...only] = process.argv.slice(2);
mkdirSync(folder, {recursive: true});
const VIEWS = {
  overview: '#/', devices: '#/devices', add: '#/devices?add=1', device: '#/devices/pi4', measurements: '#/devices/pi4?tab=measurements&measurement=3', pareto: '#/devices/pi4?tab=pareto',
  serving: '#/devices/pi4?tab=serving', hardware: '#/devices/pi4?tab=hardware', models: '#/models', latencies: '#/latencies', correlations: '#/correlations', studies: '#/studies',
  study: '#/studies/fashion-resnet', jobs: '#/jobs', job: '#/jobs/10', events: '#/events', access: '#/access',
};
const LOOKS = {
  light: {colorScheme: 'light'},
  dark: {colorScheme: 'dark'},
  phone: {colorScheme: 'light', viewport: {width: 390, height: 844}, deviceScaleFactor: 2, isMobile: true, hasTouch: true},
};
const mock = await startMock();
const browser = await startBrowser();
for (const [look, options] of Object.entries(LOOKS)) {
  const {page, context, faults} = await openPage(browser, mock.url, options);
  await page.goto(mock.url);
  await page.getByLabel('Token').waitFor();
  if (only.length === 0) await page.screenshot({path: `${folder}/${look}-signin.png`});
  await signIn(page, mock.url, ADMIN);
  for (const [name, address] of Object.entries(VIEWS)) {
    if (only.length > 0 && !only.includes(name)) continue;
    await page.goto(mock.url + '/' + address);
    await page.waitForTimeout(500);
    await page.screenshot({path: `${folder}/${look}-${name}.png`, fullPage: name !== 'devices' && name !== 'jobs' && name !== 'events'});
  }
  for (const fault of faults) console.log(look, fault);
  await context.close();
}
await browser.close();
mock.close();
