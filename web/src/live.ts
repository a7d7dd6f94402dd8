// What happens, as it happens: one stream of events for the whole page.
import {useEffect, useRef, useState} from 'preact/hooks';
import {api, type FleetEvent} from './api';

type Listener = (event: FleetEvent) => void;

const listeners = new Set<Listener>();
const watchers = new Set<(connected: boolean) => void>();
let stream: EventSource | null = null;
let connected = false;

function tell(now: boolean): void {
  connected = now;
  for (const watcher of watchers) watcher(now);
}

export function openStream(): void {
  if (stream) return;
  stream = api.eventStream();
  stream.onopen = () => tell(true);
  stream.onerror = () => {
    tell(false);
    // A browser gives up when the answer is no stream; it may be one again soon.
    if (stream?.readyState === EventSource.CLOSED) {
      stream = null;
      setTimeout(openStream, 3000);
    }
  };
  stream.onmessage = (message: MessageEvent<string>) => {
    const event = JSON.parse(message.data) as FleetEvent;
    for (const listener of listeners) listener(event);
  };
}

export function closeStream(): void {
  stream?.close();
  stream = null;
  tell(false);
}

export function useConnected(): boolean {
  const [now, setNow] = useState(connected);
  useEffect(() => {
    watchers.add(setNow);
    return () => void watchers.delete(setNow);
  }, []);
  return now;
}

/** Calls back for every event while the view is shown. */
export function useEvents(listener: Listener): void {
  const newest = useRef(listener);
  newest.current = listener;
  useEffect(() => {
    const call: Listener = (event) => newest.current(event);
    listeners.add(call);
    return () => void listeners.delete(call);
  }, []);
}

/** Calls back soon after events that matter, at most once in `every` milliseconds however many there are. */
export function useNews(matters: (event: FleetEvent) => boolean, callback: () => void, every = 1000): void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const newest = useRef(callback);
  newest.current = callback;
  useEvents((event) => {
    if (timer.current !== null || !matters(event)) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      newest.current();
    }, every);
  });
  useEffect(() => () => {
    if (timer.current !== null) clearTimeout(timer.current);
  }, []);
}
