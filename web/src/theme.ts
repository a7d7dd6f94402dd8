// Light or dark: as the system is, unless the reader has said otherwise.
import {useEffect, useState} from 'preact/hooks';

export type Theme = 'auto' | 'light' | 'dark';
const KEY = 'fleetfit.theme';
const watchers = new Set<() => void>();
const system = matchMedia('(prefers-color-scheme: dark)');
system.addEventListener('change', () => tell());

function tell(): void {
  for (const watcher of watchers) watcher();
}

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : 'auto';
}

export function applyTheme(theme: Theme = chosenTheme()): void {
  if (theme === 'auto') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  if (theme === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
  tell();
}

/** The other one than is seen now; back at what the system wants, it follows the system again. */
export function switchTheme(): void {
  const next = shownTheme() === 'dark' ? 'light' : 'dark';
  applyTheme(next === (system.matches ? 'dark' : 'light') ? 'auto' : next);
}

export function shownTheme(): 'light' | 'dark' {
  const chosen = chosenTheme();
  return chosen === 'auto' ? (system.matches ? 'dark' : 'light') : chosen;
}

export function useTheme(): 'light' | 'dark' {
  const [theme, setTheme] = useState(shownTheme());
  useEffect(() => {
    const changed = () => setTheme(shownTheme());
    watchers.add(changed);
    return () => void watchers.delete(changed);
  }, []);
  return theme;
}
