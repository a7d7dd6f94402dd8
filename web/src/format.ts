// Numbers, times and sizes as people read them.

const THIN = '\u202f';

/** Three significant digits, without an exponent where people can read it otherwise. */
export function digits(value: number, significant = 3): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4 || size > 12) return value.toExponential(significant - 1);
  const decimals = Math.max(0, significant - 1 - size);
  return group(value.toFixed(Math.min(decimals, 6)));
}

/** A number on an axis, or one that somebody has chosen: no more digits than it needs. */
export function tick(value: number): string {
  if (value === 0) return '0';
  if (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e13) return Number(value.toPrecision(3)).toExponential();
  return group(String(Number(value.toPrecision(4))));
}

/** A budget, as it was given. */
export const given = (ms: number | null | undefined) => (ms == null ? '–' : `${tick(ms)} ms`);

function group(text: string): string {
  const [whole = '', rest] = text.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
  return rest === undefined ? grouped : grouped + '.' + rest;
}

export const count = (value: number | undefined | null) => (value == null ? '–' : group(String(Math.round(value))));

export function milliseconds(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return '–';
  if (value < 0.1) return digits(value * 1000) + ' µs';
  if (value >= 10_000) return digits(value / 1000) + ' s';
  return digits(value) + ' ms';
}

/** "± 1.2 %": how far the interval is from its middle, on the wider side. */
export function plusMinus(median: number, ci95: [number, number] | null | undefined): string {
  if (!ci95 || !(median > 0)) return '';
  const share = Math.max(median - ci95[0], ci95[1] - median) / median;
  return `± ${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

export function percent(share: number | null | undefined, decimals = 1): string {
  return share == null || !Number.isFinite(share) ? '–' : (share * 100).toFixed(decimals) + ' %';
}

export function bytes(value: number | null | undefined): string {
  if (value == null) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  let amount = value;
  while (amount >= 1000 && unit < units.length - 1) {
    amount /= 1000;
    ++unit;
  }
  return `${unit === 0 ? amount : digits(amount)} ${units[unit]}`;
}

export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return '–';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${digits(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

export function ago(time: string | null | undefined, now = Date.now()): string {
  if (!time) return 'never';
  const seconds = (now - Date.parse(time)) / 1000;
  if (!Number.isFinite(seconds)) return time;
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

const two = (n: number) => String(n).padStart(2, '0');

export function clock(time: string | number): string {
  const date = new Date(time);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function dateTime(time: string | null | undefined): string {
  if (!time) return '–';
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

export const shortHash = (hash: string) => hash.slice(0, 10);

/** One line about an unknown value, for tables. */
export function plain(value: unknown): string {
  if (value == null) return '–';
  if (typeof value === 'number') return Number.isInteger(value) ? count(value) : tick(value);
  if (typeof value === 'object') return JSON.stringify(value);
  return String(value);
}

export function plural(n: number, one: string, many = one + 's'): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
