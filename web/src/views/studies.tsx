import {api, type Study, type Trial} from '../api';
import {count, dateTime, duration, percent, plain, tick} from '../format';
import {useNews} from '../live';
import {Card, Empty, Head, Loading, Pager, Problem, State, useLoad, usePages} from '../parts';
import {link} from '../route';
import {History, Parallel, Plane, Rungs} from './study_charts';
import {useEffect} from 'preact/hooks';

const PAGE = 50;
const EVERY_MS = 2000;

/** Trials come from workers that tell the store, not the server: what is not done is asked for again. */
function useAgain(active: boolean, reload: () => void): void {
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [active, reload]);
}

export function Studies() {
  const list = usePages((after) => api.studies({limit: PAGE, ...(after ? {after} : {})}), []);
  useNews((event) => event.kind === 'study', list.reload);
  const items = list.data?.items;
  useAgain((items ?? []).some((study) => !study.done), list.reload);
  return (
    <>
      <Head title="Studies">Tuning of training and inference: what was tried, and what is best so far.</Head>
      <Problem error={list.error} />
      {!items ? !list.error && <Loading rows={6} /> : items.length === 0 ? (
        <Empty title="No studies yet" command="fleetfit tune STUDY.yaml">Write a study file and start it with the store of this server; it appears here as it runs.</Empty>
      ) : (
        <table class="list rows">
          <thead><tr><th>Study</th><th>State</th><th class="num">Trials</th><th class="num">Running</th><th class="num">Failed</th><th class="num">Best accuracy</th><th>Begun</th></tr></thead>
          <tbody>
            {items.map((study) => (
              <tr key={study.name}>
                <td class="main"><a href={link(['studies', study.name])}>{study.name}</a></td>
                <td><State state={study.done ? 'finished' : study.trials.running > 0 ? 'running' : 'waiting'} /></td>
                <td class="num" data-label="Trials">{count(study.trials.all)}</td>
                <td class="num" data-label="Running">{count(study.trials.running)}</td>
                <td class="num" data-label="Failed">{count(study.trials.failed)}</td>
                <td class="num strong" data-label="Best accuracy">{percent(study.best_accuracy, 2)}</td>
                <td class="soft nowrap" data-label="Begun">{dateTime(study.created)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Pager page={list.page} shown={items?.length ?? 0} size={PAGE} more={list.more} onPage={list.step} />
    </>
  );
}

export function StudyView({name}: {name: string}) {
  const study = useLoad(() => api.study(name), [name]);
  const charts = useLoad(() => api.charts(name), [name]);
  const reload = () => {
    study.reload();
    charts.reload();
  };
  useNews((event) => event.kind === 'study' && event.body['study'] === name, reload, 1000);
  useAgain(study.data !== undefined && !study.data.done, reload);

  const s = study.data;
  const c = charts.data;
  return (
    <>
      <Head title={name}>{s && <><State state={s.done ? 'finished' : s.counts.running > 0 ? 'running' : 'waiting'} /> · begun {dateTime(s.created)} · {s.objective.join(', ')}</>}</Head>
      <Problem error={study.error ?? charts.error} />
      {s ? <Counts study={s} /> : !study.error && <Loading rows={2} />}
      {s && s.running.length > 0 && <Running trials={s.running} />}
      {c && c.history.length === 0 && <Empty title="No trial has a result yet">The charts begin with the first one.</Empty>}
      {c && c.history.length > 0 && (
        <div class="columns">
          <Card title="History" note={seen(c.trials_seen, c.trials_total)}><History charts={c} /></Card>
          {c.pareto && c.pareto.points.length > 0 && <Card title={`${c.pareto.y} against ${c.pareto.x}`} note="In colour: those that no other beats in both."><Plane charts={c} /></Card>}
          {c.parallel && c.parallel.lines.length > 0 && <Card title="Parameters" note="One line for each trial; the best tenth in colour." class="wide"><Parallel charts={c} /></Card>}
          {c.rungs.length > 0 && <Card title="Rungs" note="How many trials ended each budget, and how many went on (in colour)."><Rungs charts={c} /></Card>}
          {s && s.best.length > 0 && <Best trials={s.best} />}
        </div>
      )}
    </>
  );
}

function seen(some: number, all: number): string {
  return some < all ? `The objective of ${count(some)} of ${count(all)} trials, and the best so far.` : 'The objective of every trial, and the best so far.';
}

function Counts({study}: {study: Study}) {
  const c = study.counts;
  const numbers: [string, string][] = [
    ['Trials', count(c.all)],
    ['Finished', count(c.finished)],
    ['Stopped early', count(c.stopped)],
    ['Running', count(c.running)],
    ['Failed', count(c.failed)],
    ['Time spent', duration(study.tuning?.time_s)],
  ];
  return <div class="numbers">{numbers.map(([name, value]) => <div class="number" key={name}><span class="name">{name}</span><span class="value">{value}</span></div>)}</div>;
}

function parameters(trial: Trial): string {
  return Object.entries(trial.params).map(([key, value]) => `${key} ${plain(value)}`).join(' · ');
}

function Running({trials}: {trials: Trial[]}) {
  return (
    <Card title="Running" note="The newest, and how far they say they are.">
      <table class="list rows">
        <thead><tr><th>Trial</th><th>Progress</th><th>Parameters</th></tr></thead>
        <tbody>
          {trials.map((trial) => (
            <tr key={trial.trial}>
              <td class="main">{count(trial.trial)}</td>
              <td data-label="Progress">{trial.progress ?? '–'}</td>
              <td class="soft" data-label="Parameters">{parameters(trial)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Best({trials}: {trials: Trial[]}) {
  const labels = Object.keys(trials[0]?.objective ?? {});
  return (
    <Card title="Best trials">
      <table class="list rows">
        <thead><tr><th>Trial</th>{labels.map((label) => <th class="num" key={label}>{label}</th>)}<th>Parameters</th></tr></thead>
        <tbody>
          {trials.slice(0, 6).map((trial) => (
            <tr key={trial.trial}>
              <td class="main">{count(trial.trial)}</td>
              {labels.map((label) => <td class="num" data-label={label} key={label}>{trial.objective?.[label] === undefined ? '–' : tick(trial.objective[label] ?? 0)}</td>)}
              <td class="soft" data-label="Parameters">{parameters(trial)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
