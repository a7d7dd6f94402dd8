#include "store/sql/sql_store.h"

#include <fmt/format.h>

#include "store/check.h"
#include "store/sql/sql_fleet.h"
#include "store/sql/sql_records.h"
#include "store/sql/sql_studies.h"
#include "store/sql/sql_text.h"
#include "store/sql/sql_values.h"

namespace fleetfit::store {
namespace {

using Transaction = SqlConnection::Transaction;

struct Listing {
  std::string sql = {};
  std::vector<SqlValue> values = {};
};

// A condition for each field that restricts, so that indexes can be used.
Listing listing_of(const MeasurementFilter& filter) {
  Listing listing{.sql = fmt::format("SELECT {} FROM measurements WHERE true",
                                     columns_of<MeasurementRecord>().list())};
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
    return save(save_device_, device);
  }
  Result<std::optional<DeviceRecord>> find_device(std::string_view name) override {
    return first(read_row<DeviceRecord>, find_device_, name);
  }
  Result<std::vector<DeviceRecord>> list_devices() override {
    return all(read_row<DeviceRecord>, list_devices_);
  }
  Result<bool> remove_device(std::string_view name) override {
    return remove("DELETE FROM devices WHERE name = ?", name).map(is_any);
  }

  Status save_model(const ModelRecord& model) override {
    FLEETFIT_TRY(check(model));
    return save(save_model_, model);
  }
  Result<std::optional<ModelRecord>> find_model(std::string_view hash) override {
    return first(read_row<ModelRecord>, find_model_, hash);
  }
  Result<std::vector<ModelRecord>> list_models() override {
    return all(read_row<ModelRecord>, list_models_);
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
      FLEETFIT_ASSIGN(auto list,
                      with_operators(connection, connection.all(read_row<MeasurementRecord>,
                                                                find_measurement_, id)));
      return list.empty() ? std::nullopt : Found(std::move(list.front()));
    });
  }
  Result<std::vector<MeasurementRecord>> list_measurements(
      const MeasurementFilter& filter) override {
    return in_transaction(Transaction::read, [&](SqlConnection& connection) {
      const auto listing = listing_of(filter);
      auto list =
          connection.all(read_row<MeasurementRecord>, listing.sql, std::span(listing.values));
      return filter.operators ? with_operators(connection, std::move(list)) : list;
    });
  }
  Result<std::vector<MeasurementRecord>> list_measurements_after(std::int64_t id,
                                                                 std::size_t limit) override {
    return in_transaction(Transaction::read, [&](SqlConnection& connection) {
      return with_operators(connection, connection.all(read_row<MeasurementRecord>,
                                                       measurements_after_, id, sql_limit(limit)));
    });
  }
  Result<bool> remove_measurement(std::int64_t id) override {
    return remove("DELETE FROM measurements WHERE id = ?", id).map(is_any);
  }

  Status save_kernel_choices(std::span<const KernelChoiceRecord> choices) override {
    for (const auto& choice : choices) FLEETFIT_TRY(check(choice));
    return in_transaction(Transaction::write, [&](SqlConnection& connection) -> Status {
      for (const auto& choice : choices)
        FLEETFIT_TRY(connection.write(save_kernel_choice_, SqlValues().add_record(choice).all()));
      return {};
    });
  }
  Result<std::vector<KernelChoiceRecord>> list_kernel_choices(std::string_view cpu) override {
    return all(read_row<KernelChoiceRecord>, list_kernel_choices_, cpu);
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

  template <class Record>
  Status save(std::string_view sql, const Record& record) {
    return database_->use([&](SqlConnection& connection) {
      return connection.write(sql, SqlValues().add_record(record).all());
    });
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
      FLEETFIT_ASSIGN(const auto id,
                      connection.first(read_id, insert_measurement_,
                                       SqlValues().add_record_after(1, measurement).all()));
      FLEETFIT_TRY(insert_operators(connection, id.value(), measurement.operators));
      ids.push_back(id.value());
    }
    return ids;
  }

  Status insert_operators(SqlConnection& connection, std::int64_t measurement,
                          std::span<const OperatorTime> operators) {
    std::int64_t position = 0;
    for (const auto& op : operators)
      FLEETFIT_TRY(connection.write(insert_operator_,
                                    SqlValues(measurement, position++).add_record(op).all()));
    return {};
  }

  Result<std::vector<MeasurementRecord>> with_operators(
      SqlConnection& connection, Result<std::vector<MeasurementRecord>> list) {
    if (!list) return list;
    for (auto& measurement : *list) {
      FLEETFIT_ASSIGN(measurement.operators,
                      connection.all(read_row<OperatorTime>, list_operators_, measurement.id));
    }
    return list;
  }

  const std::string save_device_ = upsert("devices", columns_of<DeviceRecord>(), 1);
  const std::string find_device_ = select<DeviceRecord>("devices WHERE name = ?");
  const std::string list_devices_ = select<DeviceRecord>("devices ORDER BY name");
  const std::string save_model_ = upsert("models", columns_of<ModelRecord>(), 1);
  const std::string find_model_ = select<ModelRecord>("models WHERE hash = ?");
  const std::string list_models_ = select<ModelRecord>("models ORDER BY name, hash");
  const std::string save_kernel_choice_ =
      upsert("kernel_choices", columns_of<KernelChoiceRecord>(), 2);
  const std::string list_kernel_choices_ =
      select<KernelChoiceRecord>("kernel_choices WHERE cpu = ? ORDER BY key");
  const std::string insert_measurement_ =
      insert_into("measurements", columns_of<MeasurementRecord>().after(1)) + " RETURNING id";
  const std::string find_measurement_ = select<MeasurementRecord>("measurements WHERE id = ?");
  const std::string measurements_after_ =
      select<MeasurementRecord>("measurements WHERE id > ? ORDER BY id LIMIT ?");
  const std::string insert_operator_ =
      insert_into("operators", "measurement, position, " + columns_of<OperatorTime>().list());
  const std::string list_operators_ =
      select<OperatorTime>("operators WHERE measurement = ? ORDER BY position");

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
