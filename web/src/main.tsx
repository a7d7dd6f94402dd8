import {render} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {api, onSignedOut, type Session} from './api';
import {closeStream, openStream, useConnected} from './live';
import {Dialog, Empty, Loading} from './parts';
import {go, link, useRoute} from './route';
import {applyTheme, switchTheme, useTheme} from './theme';
import {Admin} from './views/admin';
import {RankCorrelations} from './views/correlations';
import {DeviceView} from './views/device';
import {Devices} from './views/devices';
import {Events} from './views/events';
import {JobView, Jobs} from './views/jobs';
import {LatencyMap} from './views/latencies';
import {ModelView, Models} from './views/models';
import {Overview} from './views/overview';
import {SignIn} from './views/signin';
import {Studies, StudyView} from './views/studies';

interface Place {
  path: string;
  name: string;
  key: string;
  adminOnly?: boolean;
}

const PLACES: Place[] = [
  {path: '', name: 'Overview', key: 'o'},
  {path: 'devices', name: 'Devices', key: 'd'},
  {path: 'models', name: 'Models', key: 'm'},
  {path: 'latencies', name: 'Latency map', key: 'l'},
  {path: 'correlations', name: 'Correlations', key: 'c'},
  {path: 'studies', name: 'Studies', key: 's'},
  {path: 'jobs', name: 'Jobs', key: 'j'},
  {path: 'events', name: 'Events', key: 'e'},
  {path: 'access', name: 'Access', key: 'a', adminOnly: true},
];

function View({session}: {session: Session}) {
  const {path, query} = useRoute();
  const [first = '', second] = path;
  switch (first) {
    case '':
      return <Overview session={session} />;
    case 'devices':
      return second ? <DeviceView key={second} name={second} session={session} /> : <Devices session={session} />;
    case 'models':
      return second ? <ModelView key={second} hash={second} name={query.get('name') ?? ''} /> : <Models session={session} />;
    case 'latencies':
      return <LatencyMap />;
    case 'correlations':
      return <RankCorrelations />;
    case 'studies':
      return second ? <StudyView key={second} name={second} /> : <Studies />;
    case 'jobs':
      return second ? <JobView key={second} id={second} session={session} /> : <Jobs session={session} />;
    case 'events':
      return <Events />;
    case 'access':
      if (session.role === 'admin') return <Admin />;
      break;
  }
  return <Empty title="There is no such page">Choose one from the list of pages.</Empty>;
}

function writing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName));
}

/** "g d": to the devices, and so on. */
function useShortcuts(onHelp: () => void): void {
  const before = useRef('');
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || writing(event.target) || document.querySelector('dialog[open]')) return;
      const place = before.current === 'g' ? PLACES.find((one) => one.key === event.key) : undefined;
      before.current = event.key;
      if (place) go(link(place.path ? [place.path] : []));
      else if (event.key === '?') onHelp();
      else if (event.key === 't') switchTheme();
      else if (event.key === '/') document.querySelector<HTMLInputElement>('input[type=search]')?.focus();
      else return;
      event.preventDefault();
    };
    window.addEventListener('keydown', pressed);
    return () => window.removeEventListener('keydown', pressed);
  }, []);
}

function Shell({session, onSignOut}: {session: Session; onSignOut: () => void}) {
  const {path} = useRoute();
  const [help, setHelp] = useState(false);
  const theme = useTheme();
  const connected = useConnected();
  const main = useRef<HTMLElement>(null);
  const started = useRef(false);
  const places = PLACES.filter((place) => !place.adminOnly || session.role === 'admin');
  const here = path.join('/');
  useShortcuts(() => setHelp(true));
  useEffect(() => {
    document.title = [path[1] ?? PLACES.find((place) => place.path === (path[0] ?? ''))?.name, 'fleetfit'].filter(Boolean).join(' · ');
    // Readers who cannot see that the view has changed are put at its head.
    if (started.current) main.current?.querySelector<HTMLElement>('h1')?.focus({preventScroll: true});
    started.current = true;
    window.scrollTo(0, 0);
    document.querySelector('.side [aria-current]')?.scrollIntoView({block: 'nearest', inline: 'center'});
  }, [here]);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>To the content</a>
      <nav class="side" aria-label="Pages">
        <a class="brand" href="#/"><img src="/icon.svg" alt="" width="26" height="26" /><span>fleetfit</span></a>
        <ul>
          {places.map((place) => (
            <li key={place.path}><a href={link(place.path ? [place.path] : [])} aria-current={(path[0] ?? '') === place.path ? 'page' : undefined}>{place.name}</a></li>
          ))}
        </ul>
        <div class="foot">
          <span class={'state ' + (connected ? 'is-online' : 'is-waiting')} title="Whether events come as they happen"><i aria-hidden="true" />{connected ? 'live' : 'connecting'}</span>
          <button type="button" class="quiet" onClick={switchTheme} aria-label={theme === 'dark' ? 'Light colours' : 'Dark colours'} title="Light or dark (t)">{theme === 'dark' ? '☀' : '☾'}</button>
          <button type="button" class="quiet" onClick={() => setHelp(true)} aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)">?</button>
          <span class="who" title={`Signed in as ${session.name}`}>{session.name || session.role}</span>
          <button type="button" class="quiet" onClick={onSignOut}>Sign out</button>
        </div>
      </nav>
      <main id="main" tabIndex={-1} ref={main}><View session={session} /></main>
      {help && <Shortcuts places={places} onClose={() => setHelp(false)} />}
    </div>
  );
}

function Shortcuts({places, onClose}: {places: Place[]; onClose: () => void}) {
  const others: [string, string][] = [['/', 'Search'], ['t', 'Light or dark'], ['?', 'This list'], ['Esc', 'Close'], ['← ↑ → ↓', 'Move in a map']];
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">
        {places.flatMap((place) => [<dt key={place.key}><kbd>g</kbd> <kbd>{place.key}</kbd></dt>, <dd key={place.key + '.'}>{place.name}</dd>])}
        {others.flatMap(([key, what]) => [<dt key={key}><kbd>{key}</kbd></dt>, <dd key={key + '.'}>{what}</dd>])}
      </dl>
    </Dialog>
  );
}

function App() {
  const [session, setSession] = useState<Session | null>();
  useEffect(() => {
    onSignedOut(() => setSession(null));
    api.session().then(setSession, () => setSession(null));
  }, []);
  useEffect(() => {
    if (session) openStream();
    else closeStream();
  }, [session]);
  const signOut = () => void api.signOut().catch(() => {}).then(() => setSession(null));
  if (session === undefined) return <main id="main"><Loading rows={3} /></main>;
  return session ? <Shell session={session} onSignOut={signOut} /> : <SignIn onDone={setSession} />;
}

applyTheme();
const page = document.getElementById('page');
if (page) render(<App />, page);
