-- A store as schema version 1 has it. Never changed: it stands for the files that users have.
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

INSERT INTO devices VALUES ('pi4', 'f00d', '{"threads":4}', 1760000000000);
INSERT INTO models VALUES ('abc123', 'resnet18', 'zoo:resnet18', 46800000);
INSERT INTO measurements VALUES
  (7, 'pi4', 'f00d', 'abc123', 'resnet18', 'nasbench201', '012340', 'unstable', 'the clock changed',
   1.1, 1.2, 1.3, 1.4, 1.05, 1.15, 321, 0.07, 5000000000, 2.5, 'modelled', '{"warm_up":5}', '{"mhz":1500}', 1760000000000),
  (9, 'pi4', '', 'abc123', '', NULL, NULL, 'failed', 'the runtime died',
   NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, '{}', '{}', 1759999999995);
INSERT INTO operators VALUES
  (7, 0, 'node0', 'Conv', 'kernel0', 0.0),
  (7, 1, 'node1', 'Relu', 'kernel1', 0.1),
  (7, 2, 'node2', 'Conv', 'kernel2', 0.2);
INSERT INTO kernel_choices VALUES ('a72', 'conv', 'xnnpack', 0.5, 1760000000000);

PRAGMA application_id = 1717987700;
PRAGMA user_version = 1;
