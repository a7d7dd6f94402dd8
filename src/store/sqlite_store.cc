#include "store/sqlite_store.h"

#include <fmt/format.h>

#include <mutex>

#include "store/check.h"
#include "store/sqlite_connection.h"
#include "store/sqlite_schema.h"
#include "store/sqlite_studies.h"
#include "store/sqlite_values.h"

namespace fleetfit::store {
namespace {

using Transaction = SqliteConnection::Transaction;

// Fields are read in the order in which they are written here, that of the queries below.

Result<DeviceRecord> read_device(SqliteRow row) {
  return DeviceRecord{.name = row.text(),
                      .fingerprint = row.text(),
                      .settings = row.text(),
                      .created = from_ms(row.integer())};
}

Result<ModelRecord> read_model(SqliteRow row) {
  return ModelRecord{
      .hash = row.text(), .name = row.text(), .source = row.text(), .bytes = row.integer()};
}

Result<OperatorRecord> read_operator(SqliteRow row) {
  return OperatorRecord{
      .name = row.text(), .type = row.text(), .kernel = row.text(), .ms = row.number()};
}

Result<KernelChoiceRecord> read_kernel_choice(SqliteRow row) {
  return KernelChoiceRecord{.cpu = row.text(),
                            .key = row.text(),
                            .choice = row.text(),
                            .ms = row.optional_number(),
                            .measured = from_ms(row.integer())};
}

constexpr std::string_view kMeasurementColumns =
    "device, device_fingerprint, model_hash, model_name, space, design, status, reason, median_ms, "
    "mean_ms, p90_ms, p99_ms, ci95_low_ms, ci95_high_ms, runs, overhead_ms, peak_memory_bytes, "
    "energy_mj, energy_source, protocol, conditions, started";
constexpr std::string_view kMeasurementParameters =
    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";

void bind_measurement(SqliteQuery& insert, const MeasurementRecord& m) {
  const auto latency = [&](double Latency::* field) {
    return m.latency ? std::optional(*m.latency.*field) : std::nullopt;
  };
  std::optional<double> energy_mj;
  std::optional<std::string_view> energy_source;
  if (m.energy) {
    energy_mj = m.energy->mj;
    energy_source = to_string(m.energy->source);
  }
  insert.bind(m.device, m.device_fingerprint, m.model_hash, m.model_name, m.space, m.design,
              to_string(m.status), m.reason, latency(&Latency::median_ms),
              latency(&Latency::mean_ms), latency(&Latency::p90_ms), latency(&Latency::p99_ms),
              latency(&Latency::ci95_low_ms), latency(&Latency::ci95_high_ms), m.runs,
              m.overhead_ms, m.peak_memory_bytes, energy_mj, energy_source, m.protocol,
              m.conditions, to_ms(m.started));
}

std::optional<Latency> read_latency(SqliteRow& row) {
  const auto median_ms = row.optional_number();
  const Latency latency{.median_ms = median_ms.value_or(0),
                        .mean_ms = row.number(),
                        .p90_ms = row.number(),
                        .p99_ms = row.number(),
                        .ci95_low_ms = row.number(),
                        .ci95_high_ms = row.number()};
  if (!median_ms) return std::nullopt;
  return latency;
}

Result<std::optional<Energy>> read_energy(SqliteRow& row) {
  const auto mj = row.optional_number();
  const auto source = row.optional_text();
  if (!mj || !source) return std::nullopt;
  return parse_energy_source(*source).map(
      [&](EnergySource parsed) { return std::optional(Energy{.mj = *mj, .source = parsed}); });
}

// A row of id and kMeasurementColumns; operators are in rows of their own.
Result<MeasurementRecord> read_measurement(SqliteRow row) {
  MeasurementRecord m{.id = row.integer(),
                      .device = row.text(),
                      .device_fingerprint = row.text(),
                      .model_hash = row.text(),
                      .model_name = row.text(),
                      .space = row.optional_text(),
                      .design = row.optional_text()};
  const auto status = parse_measurement_status(row.text());
  m.reason = row.text();
  m.latency = read_latency(row);
  m.runs = row.integer();
  m.overhead_ms = row.optional_number();
  m.peak_memory_bytes = row.optional_integer();
  const auto energy = read_energy(row);
  m.protocol = row.text();
  m.conditions = row.text();
  m.started = from_ms(row.integer());

  const auto place = [&] { return fmt::format("measurement {}", m.id); };
  if (!status) return core::within(place(), status.error());
  if (!energy) return core::within(place(), energy.error());
  m.status = *status;
  m.energy = *energy;
  return m;
}

// A condition for each field that restricts, so that SQLite can use its indexes.
std::string listing_sql(const MeasurementFilter& filter) {
  std::string sql = fmt::format("SELECT id, {} FROM measurements WHERE true", kMeasurementColumns);
  const auto restrict_by = [&](std::string_view column, bool wanted, int parameter) {
    if (wanted) sql += fmt::format(" AND {} = ?{}", column, parameter);
  };
  restrict_by("device", filter.device.has_value(), 1);
  restrict_by("device_fingerprint", filter.device_fingerprint.has_value(), 2);
  restrict_by("model_hash", filter.model_hash.has_value(), 3);
  restrict_by("space", filter.space.has_value(), 4);
  restrict_by("status", filter.status.has_value(), 5);
  return sql + " ORDER BY started DESC, id DESC LIMIT ?6";
}

class SqliteStore final : public Store {
 public:
  SqliteStore(std::unique_ptr<SqliteConnection> connection,
              std::unique_ptr<SqliteConnection> connection_of_studies)
      : connection_(std::move(connection)),
        connection_of_studies_(std::move(connection_of_studies)) {}

  Status save_device(const DeviceRecord& device) override {
    if (auto checked = check(device); !checked) return checked;
    const std::scoped_lock lock(mutex_);
    return connection_->write(
        "INSERT OR REPLACE INTO devices (name, fingerprint, settings, created) VALUES (?, ?, ?, ?)",
        device.name, device.fingerprint, device.settings, to_ms(device.created));
  }
  Result<std::optional<DeviceRecord>> find_device(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return connection_->first(
        read_device, "SELECT name, fingerprint, settings, created FROM devices WHERE name = ?",
        name);
  }
  Result<std::vector<DeviceRecord>> list_devices() override {
    const std::scoped_lock lock(mutex_);
    return connection_->all(
        read_device, "SELECT name, fingerprint, settings, created FROM devices ORDER BY name");
  }
  Result<bool> remove_device(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return remove("DELETE FROM devices WHERE name = ?", name).map(is_any);
  }

  Status save_model(const ModelRecord& model) override {
    if (auto checked = check(model); !checked) return checked;
    const std::scoped_lock lock(mutex_);
    return connection_->write(
        "INSERT OR REPLACE INTO models (hash, name, source, bytes) VALUES (?, ?, ?, ?)", model.hash,
        model.name, model.source, model.bytes);
  }
  Result<std::optional<ModelRecord>> find_model(std::string_view hash) override {
    const std::scoped_lock lock(mutex_);
    return connection_->first(read_model,
                              "SELECT hash, name, source, bytes FROM models WHERE hash = ?", hash);
  }
  Result<std::vector<ModelRecord>> list_models() override {
    const std::scoped_lock lock(mutex_);
    return connection_->all(read_model,
                            "SELECT hash, name, source, bytes FROM models ORDER BY name, hash");
  }
  Result<bool> remove_model(std::string_view hash) override {
    const std::scoped_lock lock(mutex_);
    return remove("DELETE FROM models WHERE hash = ?", hash).map(is_any);
  }

  Result<std::vector<std::int64_t>> add_measurements(
      std::span<const MeasurementRecord> measurements) override {
    for (const auto& measurement : measurements)
      if (auto checked = check(measurement); !checked) return tl::unexpected(checked.error());
    const std::scoped_lock lock(mutex_);
    return connection_->transaction(Transaction::write, [&] { return insert(measurements); });
  }
  Result<std::optional<MeasurementRecord>> find_measurement(std::int64_t id) override {
    const std::scoped_lock lock(mutex_);
    return connection_->transaction(Transaction::read, [&] { return measurement(id); });
  }
  Result<std::vector<MeasurementRecord>> list_measurements(
      const MeasurementFilter& filter) override {
    const std::scoped_lock lock(mutex_);
    return connection_->transaction(Transaction::read, [&] { return measurements(filter); });
  }
  Result<bool> remove_measurement(std::int64_t id) override {
    const std::scoped_lock lock(mutex_);
    return remove("DELETE FROM measurements WHERE id = ?", id).map(is_any);
  }

  Status save_kernel_choices(std::span<const KernelChoiceRecord> choices) override {
    for (const auto& choice : choices)
      if (auto checked = check(choice); !checked) return checked;
    const std::scoped_lock lock(mutex_);
    return connection_->transaction(Transaction::write, [&] { return insert(choices); });
  }
  Result<std::vector<KernelChoiceRecord>> list_kernel_choices(std::string_view cpu) override {
    const std::scoped_lock lock(mutex_);
    return connection_->all(
        read_kernel_choice,
        "SELECT cpu, key, choice, ms, measured FROM kernel_choices WHERE cpu = ? ORDER BY key",
        cpu);
  }
  Result<std::int64_t> remove_kernel_choices(std::string_view cpu) override {
    const std::scoped_lock lock(mutex_);
    return remove("DELETE FROM kernel_choices WHERE cpu = ?", cpu);
  }

  StudyStore& studies() override { return *studies_; }

 private:
  static bool is_any(std::int64_t count) { return count > 0; }

  // How many rows went.
  template <class Value>
  Result<std::int64_t> remove(std::string_view sql, const Value& key) {
    return connection_->write(sql, key).map([&] { return connection_->changes(); });
  }

  Result<std::vector<std::int64_t>> insert(std::span<const MeasurementRecord> measurements) {
    std::vector<std::int64_t> ids;
    for (const auto& measurement : measurements) {
      const auto id = insert(measurement);
      if (!id) return tl::unexpected(id.error());
      ids.push_back(*id);
    }
    return ids;
  }

  Result<std::int64_t> insert(const MeasurementRecord& measurement) {
    auto query = connection_->query(insert_measurement_);
    if (!query) return tl::unexpected(std::move(query.error()));
    bind_measurement(*query, measurement);
    if (auto done = query->run(); !done) return tl::unexpected(std::move(done.error()));
    const std::int64_t id = connection_->last_id();
    auto operators = insert_operators(id, measurement.operators);
    if (!operators) return tl::unexpected(std::move(operators.error()));
    return id;
  }

  Status insert_operators(std::int64_t measurement, std::span<const OperatorRecord> operators) {
    auto query = connection_->query(
        "INSERT INTO operators (measurement, position, name, type, kernel, ms) "
        "VALUES (?, ?, ?, ?, ?, ?)");
    if (!query) return tl::unexpected(std::move(query.error()));
    std::int64_t position = 0;
    for (const auto& op : operators) {
      query->bind(measurement, position++, op.name, op.type, op.kernel, op.ms);
      if (auto done = query->run(); !done) return done;
    }
    return {};
  }

  Status insert(std::span<const KernelChoiceRecord> choices) {
    for (const auto& choice : choices) {
      auto done = connection_->write(
          "INSERT OR REPLACE INTO kernel_choices (cpu, key, choice, ms, measured) "
          "VALUES (?, ?, ?, ?, ?)",
          choice.cpu, choice.key, choice.choice, choice.ms, to_ms(choice.measured));
      if (!done) return done;
    }
    return {};
  }

  Result<std::optional<MeasurementRecord>> measurement(std::int64_t id) {
    auto found = connection_->first(read_measurement, find_measurement_, id);
    if (!found || !*found) return found;
    auto filled = fill_operators(**found);
    if (!filled) return tl::unexpected(std::move(filled.error()));
    return found;
  }

  Result<std::vector<MeasurementRecord>> measurements(const MeasurementFilter& filter) {
    const auto status = filter.status ? std::optional(to_string(*filter.status)) : std::nullopt;
    auto list = connection_->all(read_measurement, listing_sql(filter), filter.device,
                                 filter.device_fingerprint, filter.model_hash, filter.space, status,
                                 sql_limit(filter.limit.value_or(kNoLimit)));
    if (!list || !filter.operators) return list;
    for (auto& measurement : *list)
      if (auto filled = fill_operators(measurement); !filled)
        return tl::unexpected(std::move(filled.error()));
    return list;
  }

  Status fill_operators(MeasurementRecord& measurement) {
    auto operators =
        connection_->all(read_operator,
                         "SELECT name, type, kernel, ms FROM operators WHERE measurement = ? "
                         "ORDER BY position",
                         measurement.id);
    if (!operators) return tl::unexpected(std::move(operators.error()));
    measurement.operators = std::move(*operators);
    return {};
  }

  const std::string insert_measurement_ = fmt::format("INSERT INTO measurements ({}) VALUES ({})",
                                                      kMeasurementColumns, kMeasurementParameters);
  const std::string find_measurement_ =
      fmt::format("SELECT id, {} FROM measurements WHERE id = ?", kMeasurementColumns);

  std::mutex mutex_;
  std::unique_ptr<SqliteConnection> connection_;
  std::mutex mutex_of_studies_;
  std::unique_ptr<SqliteConnection> connection_of_studies_;
  std::unique_ptr<StudyStore> studies_ =
      make_sqlite_studies(*connection_of_studies_, mutex_of_studies_);
};

// How a commit reaches the disk.
enum class Synchronous {
  at_once,  ///< a measurement takes seconds, and boards lose power
  /// With the next checkpoint of the log, or when the system writes it. A killed process loses
  /// nothing; after a power cut, the last trials of a study are run once more.
  soon,
};

Result<std::unique_ptr<SqliteConnection>> connect(const std::filesystem::path& path,
                                                  const SqliteStoreOptions& options,
                                                  Synchronous synchronous) {
  auto connection = SqliteConnection::open(path, options.patience);
  if (!connection) return connection;
  auto current = bring_up_to_date(**connection, current_schema());
  if (!current) return tl::unexpected(std::move(current.error()));
  // Foreign keys come last, as migrations may rebuild tables. Sixteen megabytes of pages: studies
  // of many trials have large indexes.
  auto set = (*connection)
                 ->execute(fmt::format("PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000; "
                                       "PRAGMA synchronous = {}",
                                       synchronous == Synchronous::at_once ? "FULL" : "NORMAL"));
  if (!set) return tl::unexpected(std::move(set.error()));
  return connection;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& path,
                                                 const SqliteStoreOptions& options) {
  auto connection = connect(path, options, Synchronous::at_once);
  if (!connection) return tl::unexpected(std::move(connection.error()));
  auto of_studies = connect(path, options, Synchronous::soon);
  if (!of_studies) return tl::unexpected(std::move(of_studies.error()));
  return std::make_unique<SqliteStore>(std::move(*connection), std::move(*of_studies));
}

}  // namespace fleetfit::store
