#include "store/sql/sql_store.h"

#include <fmt/format.h>

#include "store/check.h"
#include "store/sql/sql_fleet.h"
#include "store/sql/sql_studies.h"
#include "store/sql/sql_text.h"
#include "store/sql/sql_values.h"

namespace fleetfit::store {
namespace {

using Transaction = SqlConnection::Transaction;

// Fields are read in the order in which they are written here, that of the queries below.

Result<DeviceRecord> read_device(SqlRow& row) {
  return DeviceRecord{.name = row.text(),
                      .fingerprint = row.text(),
                      .settings = row.text(),
                      .created = from_ms(row.integer())};
}

Result<ModelRecord> read_model(SqlRow& row) {
  return ModelRecord{
      .hash = row.text(), .name = row.text(), .source = row.text(), .bytes = row.integer()};
}

Result<OperatorRecord> read_operator(SqlRow& row) {
  return OperatorRecord{
      .name = row.text(), .type = row.text(), .kernel = row.text(), .ms = row.number()};
}

Result<KernelChoiceRecord> read_kernel_choice(SqlRow& row) {
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

Result<std::int64_t> add_row(SqlConnection& connection, const std::string& sql,
                             const MeasurementRecord& m) {
  const auto latency = [&](auto field) {
    return m.latency ? std::optional(*m.latency.*field) : std::nullopt;
  };
  std::optional<double> energy_mj;
  std::optional<std::string_view> energy_source;
  if (m.energy) {
    energy_mj = m.energy->mj;
    energy_source = to_string(m.energy->source);
  }
  return connection
      .all(read_id, sql, m.device, m.device_fingerprint, m.model_hash, m.model_name, m.space,
           m.design, to_string(m.status), m.reason, latency(&Latency::median_ms),
           latency(&Latency::mean_ms), latency(&Latency::p90_ms), latency(&Latency::p99_ms),
           latency(&Latency::ci95_low_ms), latency(&Latency::ci95_high_ms), m.runs, m.overhead_ms,
           m.peak_memory_bytes, energy_mj, energy_source, m.protocol, m.conditions,
           to_ms(m.started))
      .map([](const std::vector<std::int64_t>& ids) { return ids.front(); });
}

std::optional<Latency> read_latency(SqlRow& row) {
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

Result<std::optional<Energy>> read_energy(SqlRow& row) {
  const auto mj = row.optional_number();
  const auto source = row.optional_text();
  if (!mj || !source) return std::nullopt;
  return parse_energy_source(*source).map(
      [&](EnergySource parsed) { return std::optional(Energy{.mj = *mj, .source = parsed}); });
}

// A row of id and kMeasurementColumns; operators are in rows of their own.
Result<MeasurementRecord> read_measurement(SqlRow& row) {
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

struct Listing {
  std::string sql = {};
  std::vector<SqlValue> values = {};
};

// A condition for each field that restricts, so that indexes can be used.
Listing listing_of(const MeasurementFilter& filter) {
  Listing listing{
      .sql = fmt::format("SELECT id, {} FROM measurements WHERE true", kMeasurementColumns)};
  const auto restrict_by = [&](std::string_view column, const auto& wanted) {
    if (!wanted) return;
    listing.sql += fmt::format(" AND {} = ?", column);
    listing.values.push_back(sql_value(*wanted));
  };
  restrict_by("device", filter.device);
  restrict_by("device_fingerprint", filter.device_fingerprint);
  restrict_by("model_hash", filter.model_hash);
  restrict_by("space", filter.space);
  restrict_by("status", filter.status ? std::optional(to_string(*filter.status)) : std::nullopt);
  listing.sql += " ORDER BY started DESC, id DESC LIMIT ?";
  listing.values.push_back(sql_value(sql_limit(filter.limit.value_or(kNoLimit))));
  return listing;
}

class SqlStore final : public Store {
 public:
  explicit SqlStore(SqlDatabases databases)
      : database_(std::move(databases.records)),
        database_of_studies_(std::move(databases.studies)),
        database_of_traffic_(std::move(databases.traffic)) {}

  Status save_device(const DeviceRecord& device) override {
    FLEETFIT_TRY(check(device));
    return write(save_device_, device.name, device.fingerprint, device.settings,
                 to_ms(device.created));
  }
  Result<std::optional<DeviceRecord>> find_device(std::string_view name) override {
    return first(read_device,
                 "SELECT name, fingerprint, settings, created FROM devices WHERE name = ?", name);
  }
  Result<std::vector<DeviceRecord>> list_devices() override {
    return all(read_device,
               "SELECT name, fingerprint, settings, created FROM devices ORDER BY name");
  }
  Result<bool> remove_device(std::string_view name) override {
    return remove("DELETE FROM devices WHERE name = ?", name).map(is_any);
  }

  Status save_model(const ModelRecord& model) override {
    FLEETFIT_TRY(check(model));
    return write(save_model_, model.hash, model.name, model.source, model.bytes);
  }
  Result<std::optional<ModelRecord>> find_model(std::string_view hash) override {
    return first(read_model, "SELECT hash, name, source, bytes FROM models WHERE hash = ?", hash);
  }
  Result<std::vector<ModelRecord>> list_models() override {
    return all(read_model, "SELECT hash, name, source, bytes FROM models ORDER BY name, hash");
  }
  Result<bool> remove_model(std::string_view hash) override {
    return remove("DELETE FROM models WHERE hash = ?", hash).map(is_any);
  }

  Result<std::vector<std::int64_t>> add_measurements(
      std::span<const MeasurementRecord> measurements) override {
    for (const auto& measurement : measurements) FLEETFIT_TRY(check(measurement));
    return in_transaction(Transaction::write, [&](SqlConnection& connection) {
      return insert(connection, measurements);
    });
  }
  Result<std::optional<MeasurementRecord>> find_measurement(std::int64_t id) override {
    using Found = std::optional<MeasurementRecord>;
    return in_transaction(Transaction::read, [&](SqlConnection& connection) -> Result<Found> {
      FLEETFIT_ASSIGN(auto list, with_operators(connection, connection.all(read_measurement,
                                                                           find_measurement_, id)));
      return list.empty() ? std::nullopt : Found(std::move(list.front()));
    });
  }
  Result<std::vector<MeasurementRecord>> list_measurements(
      const MeasurementFilter& filter) override {
    return in_transaction(Transaction::read, [&](SqlConnection& connection) {
      const auto listing = listing_of(filter);
      auto list = connection.all(read_measurement, listing.sql, std::span(listing.values));
      return filter.operators ? with_operators(connection, std::move(list)) : list;
    });
  }
  Result<std::vector<MeasurementRecord>> list_measurements_after(std::int64_t id,
                                                                 std::size_t limit) override {
    return in_transaction(Transaction::read, [&](SqlConnection& connection) {
      return with_operators(
          connection, connection.all(read_measurement, measurements_after_, id, sql_limit(limit)));
    });
  }
  Result<bool> remove_measurement(std::int64_t id) override {
    return remove("DELETE FROM measurements WHERE id = ?", id).map(is_any);
  }

  Status save_kernel_choices(std::span<const KernelChoiceRecord> choices) override {
    for (const auto& choice : choices) FLEETFIT_TRY(check(choice));
    return in_transaction(Transaction::write, [&](SqlConnection& connection) -> Status {
      for (const auto& choice : choices) {
        auto done = connection.write(save_kernel_choice_, choice.cpu, choice.key, choice.choice,
                                     choice.ms, to_ms(choice.measured));
        if (!done) return done;
      }
      return {};
    });
  }
  Result<std::vector<KernelChoiceRecord>> list_kernel_choices(std::string_view cpu) override {
    return all(
        read_kernel_choice,
        "SELECT cpu, key, choice, ms, measured FROM kernel_choices WHERE cpu = ? ORDER BY key",
        cpu);
  }
  Result<std::vector<std::string>> list_kernel_cpus() override {
    return all(read_name, "SELECT DISTINCT cpu FROM kernel_choices ORDER BY cpu");
  }
  Result<std::int64_t> remove_kernel_choices(std::string_view cpu) override {
    return remove("DELETE FROM kernel_choices WHERE cpu = ?", cpu);
  }

  StudyStore& studies() override { return *studies_; }
  FleetStore& fleet() override { return *fleet_; }

 private:
  static bool is_any(std::int64_t count) { return count > 0; }

  template <class... Values>
  Status write(std::string_view sql, const Values&... values) {
    return database_->use(
        [&](SqlConnection& connection) { return connection.write(sql, values...); });
  }
  // How many rows went.
  template <class Value>
  Result<std::int64_t> remove(std::string_view sql, const Value& key) {
    return database_->use(
        [&](SqlConnection& connection) { return connection.write_counted(sql, key); });
  }
  template <class Record, class... Values>
  Result<std::vector<Record>> all(Result<Record> (*read)(SqlRow&), std::string_view sql,
                                  const Values&... values) {
    return database_->use(
        [&](SqlConnection& connection) { return connection.all(read, sql, values...); });
  }
  template <class Record, class... Values>
  Result<std::optional<Record>> first(Result<Record> (*read)(SqlRow&), std::string_view sql,
                                      const Values&... values) {
    return database_->use(
        [&](SqlConnection& connection) { return connection.first(read, sql, values...); });
  }
  template <class Body>
  std::invoke_result_t<Body, SqlConnection&> in_transaction(Transaction kind, const Body& body) {
    return database_->use([&](SqlConnection& connection) {
      return connection.transaction(kind, [&] { return body(connection); });
    });
  }

  Result<std::vector<std::int64_t>> insert(SqlConnection& connection,
                                           std::span<const MeasurementRecord> measurements) {
    std::vector<std::int64_t> ids;
    for (const auto& measurement : measurements) {
      FLEETFIT_ASSIGN(const auto id, add_row(connection, insert_measurement_, measurement));
      FLEETFIT_TRY(insert_operators(connection, id, measurement.operators));
      ids.push_back(id);
    }
    return ids;
  }

  static Status insert_operators(SqlConnection& connection, std::int64_t measurement,
                                 std::span<const OperatorRecord> operators) {
    std::int64_t position = 0;
    for (const auto& op : operators) {
      auto added = connection.write(
          "INSERT INTO operators (measurement, position, name, type, kernel, ms) "
          "VALUES (?, ?, ?, ?, ?, ?)",
          measurement, position++, op.name, op.type, op.kernel, op.ms);
      if (!added) return added;
    }
    return {};
  }

  static Result<std::vector<MeasurementRecord>> with_operators(
      SqlConnection& connection, Result<std::vector<MeasurementRecord>> list) {
    if (!list) return list;
    for (auto& measurement : *list) {
      FLEETFIT_ASSIGN(measurement.operators,
                      connection.all(read_operator,
                                     "SELECT name, type, kernel, ms FROM operators "
                                     "WHERE measurement = ? ORDER BY position",
                                     measurement.id));
    }
    return list;
  }

  const std::string save_device_ = upsert("devices", "name", "fingerprint, settings, created");
  const std::string save_model_ = upsert("models", "hash", "name, source, bytes");
  const std::string save_kernel_choice_ =
      upsert("kernel_choices", "cpu, key", "choice, ms, measured");
  const std::string insert_measurement_ =
      fmt::format("INSERT INTO measurements ({}) VALUES ({}) RETURNING id", kMeasurementColumns,
                  placeholders(count_columns(kMeasurementColumns)));
  const std::string find_measurement_ =
      fmt::format("SELECT id, {} FROM measurements WHERE id = ?", kMeasurementColumns);
  const std::string measurements_after_ = fmt::format(
      "SELECT id, {} FROM measurements WHERE id > ? ORDER BY id LIMIT ?", kMeasurementColumns);

  std::unique_ptr<SqlDatabase> database_;
  std::unique_ptr<SqlDatabase> database_of_studies_;
  std::unique_ptr<SqlDatabase> database_of_traffic_;
  std::unique_ptr<StudyStore> studies_ =
      make_sql_studies(database_of_studies_ ? *database_of_studies_ : *database_);
  std::unique_ptr<FleetStore> fleet_ =
      make_sql_fleet({.records = *database_,
                      .traffic = database_of_traffic_ ? *database_of_traffic_ : *database_});
};

}  // namespace

std::unique_ptr<Store> make_sql_store(SqlDatabases databases) {
  return std::make_unique<SqlStore>(std::move(databases));
}

}  // namespace fleetfit::store
