// Where we are: "#/devices/pi4?tab=serving". A reload shows the same.
import {useEffect, useState} from 'preact/hooks';

export interface Route {
  path: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  return {path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query)};
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function link(path: string[], query: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) search.set(key, value);
  const text = search.toString();
  return '#/' + path.map(encodeURIComponent).join('/') + (text ? '?' + text : '');
}

export function go(address: string): void {
  location.hash = address;
}

/** Changes the query of this view without another step in the history. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const {path, query} = parseRoute(location.hash);
  const all = Object.fromEntries(query) as Record<string, string | undefined>;
  history.replaceState(null, '', link(path, {...all, ...changes}));
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return parseRoute(hash);
}
