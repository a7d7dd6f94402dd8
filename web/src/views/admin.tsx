import {useState} from 'preact/hooks';
import {api, type Role, type Token} from '../api';
import {ago, count, dateTime} from '../format';
import {Card, Command, Dialog, Empty, Field, Head, Loading, Pager, Problem, State, useAction, useLoad, usePages} from '../parts';

const PAGE = 50;

export function Admin() {
  const tokens = useLoad(api.tokens, []);
  const audit = usePages((after) => api.audit({limit: PAGE, ...(after ? {after} : {})}), []);
  const [adding, setAdding] = useState(false);
  const {busy, error, act} = useAction();
  const again = () => {
    tokens.reload();
    audit.reload();
  };
  const entries = audit.data?.items;
  return (
    <>
      <Head title="Access" actions={<button type="button" class="primary" onClick={() => setAdding(true)}>New token</button>}>Who may do what, and who did what.</Head>
      <Problem error={error ?? tokens.error} />
      <Card title="Tokens" note="Only their hashes are kept. A token that is revoked is refused from that moment.">
        {!tokens.data ? <Loading /> : (
          <table class="list rows">
            <thead><tr><th>Name</th><th>Role</th><th>Device</th><th>State</th><th>Made</th><th>Expires</th><th><span class="unseen">Revoke</span></th></tr></thead>
            <tbody>
              {tokens.data.items.map((token) => (
                <tr key={token.id}>
                  <td class="main">{token.name || `token ${token.id}`}</td>
                  <td data-label="Role">{token.role}</td>
                  <td data-label="Device">{token.device || '–'}</td>
                  <td><State state={stateOf(token)} /></td>
                  <td class="soft nowrap" data-label="Made">{dateTime(token.created)}</td>
                  <td class="soft nowrap" data-label="Expires">{token.expires ? dateTime(token.expires) : 'never'}</td>
                  <td class="num">{stateOf(token) === 'valid' && <button type="button" class="small" disabled={busy} aria-label={`Revoke ${token.name}`} onClick={() => act(async () => { await api.revokeToken(token.id); again(); })}>Revoke</button>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Card>
      <Card title="Audit" note="Newest first.">
        <Problem error={audit.error} />
        {!entries ? !audit.error && <Loading /> : entries.length === 0 ? <Empty title="Nothing was done yet" /> : (
          <table class="list rows">
            <thead><tr><th>Time</th><th>Who</th><th>What</th><th>Detail</th></tr></thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={entry.id}><td class="soft nowrap" title={dateTime(entry.time)}>{ago(entry.time)}</td><td data-label="Who">{entry.name || '–'}</td><td class="code main">{entry.action}</td><td class="soft" data-label="Detail">{entry.detail}</td></tr>
              ))}
            </tbody>
          </table>
        )}
        <Pager page={audit.page} shown={entries?.length ?? 0} size={PAGE} more={audit.more} onPage={audit.step} />
      </Card>
      {adding && <NewToken onClose={() => { setAdding(false); again(); }} />}
    </>
  );
}

function stateOf(token: Token): string {
  if (token.revoked) return 'revoked';
  return token.expires && Date.parse(token.expires) < Date.now() ? 'expired' : 'valid';
}

function NewToken({onClose}: {onClose: () => void}) {
  const [made, setMade] = useState<string>();
  const {busy, error, act} = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const days = Number(form.get('days'));
    void act(async () => {
      const token = await api.addToken({
        name: String(form.get('name')).trim(),
        role: String(form.get('role')) as Role,
        ...(days > 0 ? {expires: new Date(Date.now() + days * 86400_000).toISOString()} : {}),
      });
      setMade(token.token);
    });
  };
  if (made) {
    return (
      <Dialog title="The new token" onClose={onClose}>
        <p>It is shown only now:</p>
        <Command text={made} label="Copy token" />
        <footer><button type="button" class="primary" onClick={onClose}>Done</button></footer>
      </Dialog>
    );
  }
  return (
    <Dialog title="New token" onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name" hint="Who or what it is for."><input name="name" required maxLength={100} autoFocus /></Field>
        <Field label="Role">
          <select name="role">
            <option value="viewer">viewer: sees everything but tokens and audit</option>
            <option value="admin">admin: may do everything</option>
          </select>
        </Field>
        <Field label="Expires after, days" hint="0: never"><input name="days" type="number" min="0" max="3650" value="90" required /></Field>
        <p class="note">Tokens for devices are made by <em>Add a device</em>. {count(256)} random bits each.</p>
        <Problem error={error} />
        <footer><button type="submit" class="primary" disabled={busy}>Make it</button></footer>
      </form>
    </Dialog>
  );
}
