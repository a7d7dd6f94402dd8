-- A store as schema version 2 has it. Never changed: it stands for the files that users have.
CREATE TABLE devices (
  name TEXT NOT NULL PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  settings TEXT NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE models (
  hash TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  source TEXT NOT NULL,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE measurements (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  device TEXT NOT NULL,
  device_fingerprint TEXT NOT NULL,
  model_hash TEXT NOT NULL,
  model_name TEXT NOT NULL,
  space TEXT,
  design TEXT,
  status TEXT NOT NULL CHECK (status IN ('ok', 'unstable', 'failed')),
  reason TEXT NOT NULL,
  median_ms REAL,
  mean_ms REAL,
  p90_ms REAL,
  p99_ms REAL,
  ci95_low_ms REAL,
  ci95_high_ms REAL,
  runs INTEGER NOT NULL,
  overhead_ms REAL,
  peak_memory_bytes INTEGER,
  energy_mj REAL,
  energy_source TEXT CHECK (energy_source IN ('measured', 'modelled')),
  protocol TEXT NOT NULL,
  conditions TEXT NOT NULL,
  started INTEGER NOT NULL,
  CHECK ((energy_mj IS NULL) = (energy_source IS NULL))
) STRICT;
CREATE INDEX measurements_by_device ON measurements (device, started);
CREATE INDEX measurements_by_model ON measurements (model_hash, started);
CREATE INDEX measurements_by_space ON measurements (space, started) WHERE space IS NOT NULL;

CREATE TABLE operators (
  measurement INTEGER NOT NULL REFERENCES measurements (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  kernel TEXT NOT NULL,
  ms REAL NOT NULL,
  PRIMARY KEY (measurement, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernel_choices (
  cpu TEXT NOT NULL,
  key TEXT NOT NULL,
  choice TEXT NOT NULL,
  ms REAL,
  measured INTEGER NOT NULL,
  PRIMARY KEY (cpu, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE studies (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  definition TEXT NOT NULL,
  seed INTEGER NOT NULL,
  created INTEGER NOT NULL
) STRICT;

CREATE TABLE study_progress (
  study INTEGER NOT NULL PRIMARY KEY REFERENCES studies (id) ON DELETE CASCADE,
  done INTEGER NOT NULL CHECK (done IN (0, 1)),
  tuning_s REAL NOT NULL,
  tuning_j REAL,
  tuner TEXT NOT NULL,
  tuner_until INTEGER,
  change INTEGER NOT NULL,
  queued INTEGER NOT NULL,
  running INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  stopped INTEGER NOT NULL,
  failed INTEGER NOT NULL
) STRICT;

CREATE TABLE trials (
  study INTEGER NOT NULL REFERENCES studies (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  params TEXT NOT NULL,
  bracket INTEGER NOT NULL,
  level INTEGER NOT NULL,
  state TEXT NOT NULL
    CHECK (state IN ('queued', 'running', 'paused', 'finished', 'stopped', 'failed')),
  reason TEXT NOT NULL,
  structure TEXT NOT NULL,
  model_file TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  worker TEXT NOT NULL,
  lease_until INTEGER,
  stop_requested INTEGER NOT NULL CHECK (stop_requested IN (0, 1)),
  score REAL,
  change INTEGER NOT NULL,
  PRIMARY KEY (study, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX trials_by_change ON trials (study, change);
CREATE INDEX trials_by_score ON trials (study, score, number) WHERE score IS NOT NULL;
CREATE INDEX trials_by_lease ON trials (study, lease_until, number) WHERE lease_until IS NOT NULL;
CREATE INDEX trials_in_queue ON trials (study, number) WHERE state = 'queued';

CREATE TABLE levels (
  study INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  level INTEGER NOT NULL,
  epochs INTEGER NOT NULL,
  data_fraction REAL NOT NULL,
  accuracy REAL NOT NULL,
  loss REAL,
  training_s REAL NOT NULL,
  training_j REAL,
  metrics TEXT NOT NULL,
  epoch_values TEXT NOT NULL,
  worker TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  PRIMARY KEY (study, trial, level),
  FOREIGN KEY (study, trial) REFERENCES trials (study, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE inferences (
  structure TEXT NOT NULL,
  device_fingerprint TEXT NOT NULL,
  question TEXT NOT NULL,
  device TEXT NOT NULL,
  result TEXT NOT NULL,
  failed INTEGER NOT NULL CHECK (failed IN (0, 1)),
  elapsed_s REAL NOT NULL,
  study TEXT NOT NULL,
  found INTEGER NOT NULL,
  PRIMARY KEY (structure, device_fingerprint, question)
) STRICT, WITHOUT ROWID;
CREATE INDEX inferences_by_study ON inferences (study, found);

INSERT INTO devices VALUES ('pi4', '', '{}', 0);
INSERT INTO studies VALUES (4, 's', 'name: s' || char(10), 7, 1760000000000);
INSERT INTO study_progress VALUES (4, 0, 2.5, 40.0, 'host:9', 1760000000010, 3, 1, 1, 0, 0, 0, 0);
INSERT INTO trials VALUES
  (4, 0, '{"layers":18}', 1, 3, 'running', 'others were better', 'beef', 'out.onnx', 2, 'host:1', 1760000000500, 1, -1.5, 3),
  (4, 1, '{}', 0, 0, 'queued', '', '', '', 0, '', NULL, 0, NULL, 2);
INSERT INTO levels VALUES
  (4, 0, 1, 5, 0.25, 0.83, 1.25, 12.5, 340.0, '{"f1":0.8}', '[0.5,0.7,0.83]', 'host:1', 1760000000100, 1760000000200),
  (4, 0, 2, 6, 0.25, 0.83, 1.25, 12.5, 340.0, '{"f1":0.8}', '[0.5,0.7,0.83]', 'host:1', 1760000000100, 1760000000200);
INSERT INTO inferences VALUES ('beef', 'f00d', 'single', 'pi4', '{"latency_ms":3}', 0, 1.5, 's', 1760000000001);

PRAGMA application_id = 1717987700;
PRAGMA user_version = 2;
