// All that the page asks of the server (docs/fleet.md), with the types of the answers.

export type Role = 'admin' | 'viewer' | 'agent';
export type DeviceState = 'online' | 'offline' | 'never';
export type JobState = 'waiting' | 'running' | 'finished' | 'failed' | 'cancelled';
export type JobKind = 'probe' | 'measure' | 'profile' | 'adapt' | 'run' | 'deploy';

export interface Page<T> {
  items: T[];
  next: string | number | null;
}

export interface Session {
  role: Role;
  name: string;
}

export interface Summary {
  devices: {all: number} & Record<DeviceState, number>;
  jobs: Record<JobState, number>;
  models: number;
  measurements: number;
  studies: number;
  newest_event: number;
}

export interface Serving {
  bundle?: string;
  subnet?: string;
  latency_ms?: number;
  budget_ms?: number;
  accuracy?: number;
}

export interface DeviceRow {
  name: string;
  state: DeviceState;
  agent_version?: string | null;
  hardware?: string | null;
  last_seen?: string | null;
  jobs?: {waiting: number; running: number};
  serving?: Serving | null;
}

export interface DeviceSetting {
  name: string;
  runtime?: string;
  threads?: number;
  cores?: string | number[] | null;
  precision?: string;
  fingerprint?: string;
}

export interface Device extends DeviceRow {
  created?: string;
  probe?: Record<string, unknown> | null;
  settings?: DeviceSetting[];
  measurements?: Measurement[];
}

export interface NewDevice extends DeviceRow {
  token: string;
}

export interface Operator {
  name: string;
  type: string;
  kernel?: string;
  latency_ms: number;
}

export interface Measurement {
  id: number | string;
  model: string;
  hash?: string;
  device: string;
  status: 'ok' | 'unstable' | 'failed';
  reason?: string | null;
  latency_ms?: {median: number; mean?: number; p90?: number; p99?: number; ci95: [number, number]} | null;
  runs?: number;
  overhead_ms?: number | null;
  peak_memory_bytes?: number | null;
  energy_mj?: {value: number; source: string} | null;
  started?: string;
  ops?: Operator[];
}

export interface Pareto {
  points: {design: string; latency_ms: number; accuracy: number}[];
  chosen?: string | null;
  budget_ms?: number | null;
}

export interface Model {
  hash: string;
  name: string;
  bytes?: number | null;
  measured_on: number;
}

export interface StoredFile {
  hash: string;
  name: string;
  bytes: number;
  kind: 'onnx' | 'bundle' | 'pool' | 'key' | 'data';
}

export interface Latencies {
  models: string[];
  hashes?: string[];
  devices: string[];
  cells: {
    model: string;
    device: string;
    median_ms: number | null;
    ci95?: [number, number] | null;
    status: string;
    measured?: string;
    measurement?: number;
  }[];
}

export interface Correlations {
  devices: string[];
  srcc: (number | null)[][];
  designs: number | (number | null)[][];
}

export interface Job {
  id: number;
  device: string;
  kind: JobKind;
  request: Record<string, unknown>;
  state: JobState;
  reason?: string | null;
  attempt: number;
  created: string;
  started?: string | null;
  finished?: string | null;
  result?: Record<string, unknown> | null;
}

export interface FleetEvent {
  id: number;
  time: string;
  device_time?: string;
  device: string | null;
  job: number | null;
  kind: string;
  body: Record<string, unknown>;
}

export interface TrialCounts {
  waiting: number;
  running: number;
  finished: number;
  stopped: number;
  failed: number;
  all: number;
}

export interface StudySummary {
  name: string;
  created: string;
  done: boolean;
  trials: TrialCounts;
  best_accuracy: number | null;
  tuning?: {time_s: number; energy_j: number | null};
}

export interface Trial {
  trial: number;
  status: string;
  params: Record<string, unknown>;
  accuracy: number | null;
  reason?: string | null;
  progress?: string | null;
  objective: Record<string, number> | null;
  feasible?: boolean | null;
}

export interface Study {
  name: string;
  created: string;
  done: boolean;
  objective: string[];
  counts: TrialCounts;
  trials_total: number;
  tuning?: {time_s: number; energy_j: number | null};
  best: Trial[];
  running: Trial[];
}

export interface Rung {
  bracket: number;
  level: number;
  budget: {epochs: number; data_fraction: number} | null;
  ended: number;
  promoted: number;
  best_accuracy: number;
}

export interface StudyCharts {
  objective: string[];
  trials_total: number;
  trials_seen: number;
  history: {trial: number; value: number | null; best: number | null}[];
  pareto: {x: string; y: string; points: {trial: number; x: number | null; y: number | null; front: boolean}[]} | null;
  rungs: Rung[];
  parallel: {
    axes: {name: string; values?: (string | number)[]; log?: boolean}[];
    lines: {trial: number; values: (number | null)[]; best: boolean}[];
  } | null;
}

export interface Token {
  id: number;
  name: string;
  role: Role;
  device?: string | null;
  created: string;
  expires?: string | null;
  revoked?: string | null;
}

export interface AuditEntry {
  id: number;
  time: string;
  name: string;
  action: string;
  detail: string;
}

/** What the server did not do, in its own words. Status 0: it was not reached. */
export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const ROOT = '/api/v1';
let signedOut: () => void = () => {};

/** Is told when the server no longer knows who we are. */
export function onSignedOut(callback: () => void): void {
  signedOut = callback;
}

type Query = Record<string, string | number | null | undefined>;

function url(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') search.set(key, String(value));
  const text = search.toString();
  return ROOT + path + (text ? '?' + text : '');
}

async function failure(reply: Response): Promise<ApiError> {
  let message = `The server answered ${reply.status}.`;
  try {
    const body = (await reply.json()) as {error?: {message?: string}};
    if (body.error?.message) message = body.error.message;
  } catch {
    // Not JSON: the status has to do.
  }
  return new ApiError(reply.status, message);
}

async function call<T>(method: string, address: string, body?: BodyInit, type?: string): Promise<T> {
  let reply: Response;
  try {
    reply = await fetch(address, {
      method,
      credentials: 'same-origin',
      // Pages of others can make a browser send our cookie, but not this header.
      headers: {'X-Fleetfit': '1', ...(type ? {'Content-Type': type} : {})},
      ...(body === undefined ? {} : {body}),
    });
  } catch {
    throw new ApiError(0, 'The server cannot be reached.');
  }
  if (!reply.ok) {
    const error = await failure(reply);
    if (error.status === 401 && !(method === 'POST' && address === ROOT + '/session')) signedOut();
    throw error;
  }
  const text = await reply.text();
  return (text ? JSON.parse(text) : null) as T;
}

const get = <T>(path: string, query?: Query) => call<T>('GET', url(path, query));
const post = <T>(path: string, body: unknown) => call<T>('POST', url(path), JSON.stringify(body), 'application/json');
const remove = (path: string) => call<unknown>('DELETE', url(path));
const part = encodeURIComponent;

export interface JobRequest {
  device: string;
  kind: JobKind;
  request: Record<string, unknown>;
}

export const api = {
  session: () => get<Session>('/session'),
  signIn: (token: string) => post<Session>('/session', {token}),
  signOut: () => remove('/session'),
  health: () => get<{status: string; version: string}>('/health'),
  summary: () => get<Summary>('/summary'),

  devices: (query: {state?: string; query?: string; after?: string; limit?: number}) =>
    get<Page<DeviceRow>>('/devices', query),
  addDevice: (name: string) => post<NewDevice>('/devices', {name}),
  device: (name: string) => get<Device>('/devices/' + part(name)),
  removeDevice: (name: string) => remove('/devices/' + part(name)),
  pareto: (name: string, model?: string) => get<Pareto>(`/devices/${part(name)}/pareto`, {model}),

  models: (query: {after?: string; limit?: number} = {}) => get<Page<Model>>('/models', query),
  files: (kind: string) => get<Page<StoredFile>>('/files', {kind}),
  upload: (file: File) =>
    call<StoredFile>('POST', url('/files', {name: file.name}), file, 'application/octet-stream'),

  latencies: (models: string, devices: string) => get<Latencies>('/latencies', {models, devices}),
  correlations: (space?: string) => get<Correlations>('/correlations', {space}),
  measurements: (query: {device?: string; model?: string; limit?: number}) =>
    get<Page<Measurement>>('/measurements', query),
  measurement: (id: string | number) => get<Measurement>('/measurements/' + part(String(id))),

  jobs: (query: {state?: string; device?: string; after?: string | number; limit?: number}) =>
    get<Page<Job>>('/jobs', query),
  job: (id: number | string) => get<Job>('/jobs/' + part(String(id))),
  addJob: (job: JobRequest) => post<Job>('/jobs', job),
  cancelJob: (id: number) => remove('/jobs/' + id),

  studies: (query: {after?: string; limit?: number} = {}) => get<Page<StudySummary>>('/studies', query),
  study: (name: string) => get<Study>('/studies/' + part(name)),
  charts: (name: string) => get<StudyCharts>(`/studies/${part(name)}/charts`),

  events: (query: {device?: string; kind?: string; limit?: number}) => get<Page<FleetEvent>>('/events', query),
  eventStream: () => new EventSource(ROOT + '/events/stream'),

  tokens: () => get<Page<Token>>('/tokens'),
  addToken: (token: {name: string; role: Role; device?: string; expires?: string}) =>
    post<Token & {token: string}>('/tokens', token),
  revokeToken: (id: number) => remove('/tokens/' + id),
  audit: (query: {after?: string | number; limit?: number} = {}) => get<Page<AuditEntry>>('/audit', query),
};
