#include "store/sql/schema.h"

#include <fmt/format.h>

#include <array>

namespace fleetfit::store {
namespace {

// In the words of SQLite, and only ever added to: data bases of every released version exist.
// docs/formats/store.md describes the result.
constexpr std::string_view kRecords = R"sql(
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
)sql";

constexpr std::string_view kStudies = R"sql(
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
)sql";

constexpr std::string_view kFleet = R"sql(
ALTER TABLE trials ADD COLUMN progress TEXT NOT NULL DEFAULT '';
DROP INDEX trials_by_score;
CREATE INDEX trials_by_score ON trials (study, (state <> 'finished'), score, number)
  WHERE score IS NOT NULL;

CREATE TABLE fleet_counters (
  what TEXT NOT NULL PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO fleet_counters (what, last)
  VALUES ('tokens', 0), ('jobs', 0), ('events', 0), ('audit', 0);

CREATE TABLE tokens (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('admin', 'viewer', 'agent')),
  hash TEXT NOT NULL UNIQUE,
  device TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER,
  revoked INTEGER
) STRICT;

CREATE TABLE agents (
  name TEXT NOT NULL PRIMARY KEY,
  version TEXT NOT NULL,
  hardware TEXT NOT NULL,
  search TEXT NOT NULL,
  serving TEXT NOT NULL,
  created INTEGER NOT NULL,
  last_seen INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_by_last_seen ON agents (last_seen, name);

CREATE TABLE agent_probes (
  agent TEXT NOT NULL PRIMARY KEY REFERENCES agents (name) ON DELETE CASCADE,
  probe TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  id INTEGER NOT NULL PRIMARY KEY,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL,
  request TEXT NOT NULL,
  limits TEXT NOT NULL,
  key TEXT,
  state TEXT NOT NULL
    CHECK (state IN ('waiting', 'running', 'finished', 'failed', 'cancelled')),
  reason TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  most_attempts INTEGER NOT NULL,
  lease INTEGER,
  cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
  result TEXT NOT NULL,
  created INTEGER NOT NULL,
  started INTEGER,
  ended INTEGER
) STRICT;
CREATE INDEX jobs_by_agent ON jobs (agent, id);
CREATE INDEX jobs_by_agent_and_state ON jobs (agent, state, id);
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_lease ON jobs (lease, id) WHERE lease IS NOT NULL;
CREATE UNIQUE INDEX jobs_by_key ON jobs (key) WHERE key IS NOT NULL;

CREATE TABLE job_counts (
  agent TEXT NOT NULL PRIMARY KEY,
  waiting INTEGER NOT NULL,
  running INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  id INTEGER NOT NULL PRIMARY KEY,
  agent TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  job INTEGER,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  time INTEGER NOT NULL
) STRICT;
CREATE INDEX events_by_agent ON events (agent, id);
CREATE INDEX events_by_agent_and_kind ON events (agent, kind, id);
CREATE INDEX events_by_kind ON events (kind, id);
CREATE INDEX events_by_job ON events (job, id) WHERE job IS NOT NULL;
CREATE INDEX events_by_time ON events (time);

CREATE TABLE event_sequences (
  agent TEXT NOT NULL PRIMARY KEY,
  sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE files (
  hash TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_created ON files (created, hash);

CREATE TABLE audit (
  id INTEGER NOT NULL PRIMARY KEY,
  token INTEGER NOT NULL,
  name TEXT NOT NULL,
  action TEXT NOT NULL,
  detail TEXT NOT NULL,
  time INTEGER NOT NULL
) STRICT;
)sql";

// What agents say of times is not what events are sorted and forgotten by. Events of before have
// the time of their agent alone.
constexpr std::string_view kOrigins = R"sql(
ALTER TABLE tokens ADD COLUMN devices INTEGER NOT NULL DEFAULT 100;
ALTER TABLE agents ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
CREATE INDEX agents_by_token ON agents (token);
ALTER TABLE events ADD COLUMN device_time INTEGER;
)sql";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// The same tables; texts are compared byte by byte there, too.
std::string in_postgres(std::string_view sql) {
  std::string text(sql);
  for (const auto* truth : {"done", "stop_requested", "failed", "cancel_requested"})
    replace_all(text, fmt::format("{0} INTEGER NOT NULL CHECK ({0} IN (0, 1))", truth),
                fmt::format("{} BOOLEAN NOT NULL", truth));
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
      {"INTEGER", "BIGINT"},
      {"REAL", "DOUBLE PRECISION"},
      {" TEXT", R"( TEXT COLLATE "C")"},
      {" STRICT, WITHOUT ROWID", ""},
      {" STRICT", ""}};
  for (const auto& [word, other] : kWords) replace_all(text, word, other);
  return text;
}

}  // namespace

Migrations sqlite_migrations() {
  static constexpr std::array kAll{kRecords, kStudies, kFleet, kOrigins};
  return kAll;
}

Migrations postgres_migrations() {
  static const std::array kTexts{in_postgres(kRecords) + in_postgres(kStudies), in_postgres(kFleet),
                                 in_postgres(kOrigins)};
  static const std::array<std::string_view, kTexts.size()> kAll{kTexts[0], kTexts[1], kTexts[2]};
  return kAll;
}

Status check_version(const SqlConnection& connection, std::size_t version, Migrations migrations) {
  if (version <= migrations.size()) return {};
  return connection.failure(
      ErrorCode::unsupported,
      fmt::format("it was written by a newer fleetfit (schema version {}, this one knows {})",
                  version, migrations.size()));
}

Status run_migrations(SqlConnection& connection, std::size_t version, Migrations migrations) {
  for (std::size_t i = version; i < migrations.size(); ++i) {
    const auto migrated = connection.execute(std::string(migrations[i]));
    if (!migrated)
      return core::within(fmt::format("migration to schema version {}", i + 1), migrated.error());
  }
  return {};
}

}  // namespace fleetfit::store
