// Numbers that a chart can draw.

const LARGEST = 1e300;
const SMALLEST = 1e-15;

/**
 * The numbers in a chart's data as ECharts can draw them: the difference of any two is finite, and steps between ticks can be written down. Nobody sees a difference:
 * what lies beyond is as high as the chart, or on its zero.
 */
export function drawable(data: unknown): unknown {
  if (typeof data === 'number') return Math.abs(data) < SMALLEST ? 0 : Math.max(-LARGEST, Math.min(LARGEST, data));
  if (Array.isArray(data)) return data.map(drawable);
  if (data !== null && typeof data === 'object' && 'value' in data) return {...data, value: drawable(data.value)};
  return data;
}
