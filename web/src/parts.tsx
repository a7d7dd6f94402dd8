// Small pieces that several views are made of.
import type {ComponentChildren} from 'preact';
import {useCallback, useEffect, useRef, useState} from 'preact/hooks';
import {ApiError, type DeviceState, type JobState} from './api';

export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  reload: () => void;
}

/** Loads when `keys` change and when asked to; what was there stays until the new answer comes. */
export function useLoad<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
  const [state, setState] = useState<{key: string; data?: T; error?: ApiError}>({key: ''});
  const turn = useRef(0);
  const key = JSON.stringify(keys);
  const newest = useRef(load);
  newest.current = load;
  const reload = useCallback(() => {
    const mine = ++turn.current;
    newest.current().then(
      (data) => mine === turn.current && setState({key, data}),
      (error: unknown) =>
        mine === turn.current &&
        setState((before) => ({
          ...(before.key === key ? before : {}),
          key,
          error: error instanceof ApiError ? error : new ApiError(0, String(error)),
        })),
    );
  }, [key]);
  useEffect(() => {
    reload();
    return () => void ++turn.current;
  }, [reload]);
  return {data: state.data, error: state.key === key ? state.error : undefined, reload};
}

export function Problem({error}: {error: ApiError | undefined}) {
  return error ? <p class="problem" role="alert">{error.message}</p> : null;
}

export function Loading({rows = 3}: {rows?: number}) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({length: rows}, (_, i) => <span key={i} />)}
    </div>
  );
}

export function Card(props: {title?: string; note?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; class?: string}) {
  return (
    <section class={'card ' + (props.class ?? '')}>
      {(props.title || props.actions) && (
        <header>
          {props.title && <h2>{props.title}</h2>}
          {props.actions && <div class="actions">{props.actions}</div>}
        </header>
      )}
      {props.note && <p class="note">{props.note}</p>}
      {props.children}
    </section>
  );
}

/** Nothing is here yet: says why, and what to do about it. */
export function Empty({title, children, command}: {title: string; children?: ComponentChildren; command?: string}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
      {command && <Command text={command} />}
    </div>
  );
}

/** A command to copy. */
export function Command({text, label = 'Copy'}: {text: string; label?: string}) {
  const [done, setDone] = useState(false);
  const code = useRef<HTMLElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      // Without the right to the clipboard (plain http from another host) the text is selected instead.
      if (code.current) getSelection()?.selectAllChildren(code.current);
    }
  };
  return (
    <div class="command">
      <code ref={code}>{text}</code>
      <button type="button" class="small" onClick={copy}>{done ? 'Copied' : label}</button>
    </div>
  );
}

const STATE_TEXT: Record<string, string> = {never: 'never seen'};

/** A state by word, colour and shape, so that no one of them alone has to tell it. */
export function State({state}: {state: DeviceState | JobState | string}) {
  return (
    <span class={'state is-' + state}>
      <i aria-hidden="true" />
      {STATE_TEXT[state] ?? state}
    </span>
  );
}

export function Head({title, children, actions}: {title: string; children?: ComponentChildren; actions?: ComponentChildren}) {
  return (
    <header class="head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {children && <p class="lead">{children}</p>}
      </div>
      {actions && <div class="actions">{actions}</div>}
    </header>
  );
}

/** Asks something in a dialog of the browser's own, which keeps the focus and closes on Escape. */
export function Dialog({title, onClose, children}: {title: string; onClose: () => void; children: ComponentChildren}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <button type="button" class="quiet" aria-label="Close" onClick={onClose}>✕</button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Runs what a button asks for, and keeps what went wrong. */
export function useAction(): {busy: boolean; error: ApiError | undefined; act: (work: () => Promise<void>) => Promise<void>} {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const act = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
    } finally {
      setBusy(false);
    }
  };
  return {busy, error, act};
}

export function Field({label, hint, children}: {label: string; hint?: string; children: ComponentChildren}) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
    </label>
  );
}

/** Buttons of which one is pressed. */
export function Choice<T extends string>(props: {label: string; value: T; options: {value: T; text: string}[]; onChange: (value: T) => void}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const pressed = box.current?.querySelector<HTMLElement>('[aria-pressed=true]');
    // On a phone not all of them are seen at once.
    if (box.current && pressed) box.current.scrollLeft = pressed.offsetLeft + pressed.offsetWidth / 2 - box.current.offsetLeft - box.current.clientWidth / 2;
  }, [props.value]);
  return (
    <div class="choice" role="group" aria-label={props.label} ref={box}>
      {props.options.map((option) => (
        <button type="button" key={option.value} aria-pressed={option.value === props.value} onClick={() => props.onChange(option.value)}>
          {option.text}
        </button>
      ))}
    </div>
  );
}

/** A search box that speaks when the writer pauses. */
export function Search({value, label, onChange}: {value: string; label: string; onChange: (text: string) => void}) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  return (
    <input
      type="search"
      class="search"
      placeholder={label}
      aria-label={label}
      defaultValue={value}
      onInput={(event) => {
        const text = event.currentTarget.value;
        clearTimeout(timer.current);
        timer.current = setTimeout(() => onChange(text.trim()), 200);
      }}
    />
  );
}

/** Steps through a list that tells only what comes next: the way back is remembered. */
export function Pager(props: {page: number; shown: number; size: number; more: boolean; total?: number | undefined; onPage: (step: 1 | -1) => void}) {
  if (props.page === 0 && !props.more) return null;
  const first = props.page * props.size + 1;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={props.page === 0} onClick={() => props.onPage(-1)}>← Previous</button>
      <span aria-live="polite">
        {first.toLocaleString('en')}–{(first + props.shown - 1).toLocaleString('en')}
        {props.total !== undefined && ` of ${props.total.toLocaleString('en')}`}
      </span>
      <button type="button" disabled={!props.more} onClick={() => props.onPage(1)}>Next →</button>
    </nav>
  );
}

/** Pages of a list by their cursors; begins anew when `keys` change. */
export function usePages<T>(load: (after: string | undefined) => Promise<{items: T[]; next: string | number | null}>, keys: unknown[]) {
  const key = JSON.stringify(keys);
  const [place, setPlace] = useState<{key: string; cursors: (string | undefined)[]}>({key, cursors: [undefined]});
  const cursors = place.key === key ? place.cursors : [undefined];
  const after = cursors[cursors.length - 1];
  const loaded = useLoad(() => load(after), [key, after]);
  const step = (direction: 1 | -1) => {
    const next = loaded.data?.next;
    if (direction === -1) setPlace({key, cursors: cursors.slice(0, -1)});
    else if (next != null) setPlace({key, cursors: [...cursors, String(next)]});
  };
  return {...loaded, page: cursors.length - 1, more: loaded.data?.next != null, step};
}
