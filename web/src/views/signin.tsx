import {useRef} from 'preact/hooks';
import {api, type Session} from '../api';
import {Command, Field, Problem, useAction} from '../parts';

export function SignIn({onDone}: {onDone: (session: Session) => void}) {
  const {busy, error, act} = useAction();
  const field = useRef<HTMLInputElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    void act(async () => {
      try {
        onDone(await api.signIn(field.current?.value.trim() ?? ''));
      } catch (problem) {
        field.current?.focus();
        field.current?.select();
        throw problem;
      }
    });
  };
  return (
    <main class="signin" id="main">
      <form onSubmit={submit}>
        <h1><img src="/icon.svg" alt="" width="32" height="32" /> fleetfit</h1>
        <p class="lead">Which model runs where, how fast, and how good.</p>
        <Field label="Token" hint="It stays in this browser as a cookie that scripts cannot read.">
          <input ref={field} name="token" type="password" required autoFocus autocomplete="current-password" spellcheck={false} />
        </Field>
        <Problem error={error} />
        <button type="submit" class="primary" disabled={busy}>Sign in</button>
        <p class="note">No token yet? On the server's machine:</p>
        <Command text="fleetfit token create --role admin" />
      </form>
    </main>
  );
}
