// Charts of numbers that make no sense.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {transformSync} from 'esbuild';
import * as echarts from 'echarts';

async function load(name) {
  const source = readFileSync(new URL(`../src/${name}.ts`, import.meta.url), 'utf8');
  return import('data:text/javascript,' + encodeURIComponent(transformSync(source, {loader: 'ts'}).code));
}

const EXTREMES = [-Number.MAX_VALUE, -1e308, -1, -1e-300, -Number.MIN_VALUE, -0, 0, Number.MIN_VALUE, 1e-320, 1e-15, 1.1e-15, 1, 1 + Number.EPSILON, 1e15, 1e15 + 1, 1e308, Number.MAX_VALUE];

export const tests = {
  'a chart bears any finite range': async () => {
    const {drawable} = await load('range');
    const {tick} = await load('format');
    for (const a of EXTREMES) {
      for (const b of EXTREMES) {
        const chart = echarts.init(null, null, {renderer: 'svg', ssr: true, width: 600, height: 300});
        const axis = {type: 'value', scale: true, axisLabel: {formatter: tick}};
        chart.setOption({animation: false, xAxis: axis, yAxis: axis, series: [{type: 'scatter', data: drawable([[a, b], [b, a]])}]});
        const svg = chart.renderToSVGString();
        chart.dispose();
        assert.ok(svg.length < 30_000 && !/NaN|Infinity/.test(svg), `${a} to ${b}: ${svg.length} characters`);
      }
    }
  },

  'labels are short': async () => {
    const {tick, digits} = await load('format');
    for (const value of EXTREMES) for (const label of [tick(value), digits(value)]) assert.ok(label.length <= 22, label);
    assert.equal(tick(1234.5), '1\u202f235');
    assert.equal(tick(1.5e300), '1.5e+300');
  },

  'what is drawn keeps its numbers': async () => {
    const {drawable} = await load('range');
    const data = [[1, 2.5, null, 'x'], {value: [3, -1e308], name: 'n'}, 7, '-'];
    assert.deepEqual(drawable(data), [[1, 2.5, null, 'x'], {value: [3, -1e300], name: 'n'}, 7, '-']);
  },
};
