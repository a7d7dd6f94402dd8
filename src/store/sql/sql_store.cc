#include "store/sql/sql_store.h"

#include <limits>

#include "store/check.h"
#include "store/sql/sql_table.h"

namespace fleetfit::store {
namespace {

using Transaction = SqlConnection::Transaction;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// A condition for each field that restricts, so that indexes can be used.
SqlQuery query_of(const MeasurementFilter& filter) {
  SqlQuery query{.sql = select<MeasurementRecord>("measurements WHERE true")};
  query.restrict_by("device = ?", filter.device);
  query.restrict_by("device_fingerprint = ?", filter.device_fingerprint);
  query.restrict_by("model_hash = ?", filter.model_hash);
  query.restrict_by("space = ?", filter.space);
  query.restrict_by("status = ?", filter.status);
  query.order_by("started DESC, id DESC", filter.limit.value_or(kNoLimit));
  return query;
}

class SqlStore final : public Store {
 public:
  explicit SqlStore(SqlDatabases databases)
      : database_(std::move(databases.records)),
        database_of_studies_(std::move(databases.studies)),
        database_of_traffic_(std::move(databases.traffic)) {}

  Status save_device(const DeviceRecord& device) override {
    FLEETFIT_TRY(check(device));
    return database_->write(devices_.save, device);
  }
  Result<std::optional<DeviceRecord>> find_device(std::string_view name) override {
    return database_->first<DeviceRecord>(devices_.find, name);
  }
  Result<std::vector<DeviceRecord>> list_devices() override {
    return database_->all<DeviceRecord>(devices_.select("ORDER BY name"));
  }
  Result<bool> remove_device(std::string_view name) override {
    return database_->write_counted("DELETE FROM devices WHERE name = ?", name).map(is_any);
  }

  Status save_model(const ModelRecord& model) override {
    FLEETFIT_TRY(check(model));
    return database_->write(models_.save, model);
  }
  Result<std::optional<ModelRecord>> find_model(std::string_view hash) override {
    return database_->first<ModelRecord>(models_.find, hash);
  }
  Result<std::vector<ModelRecord>> list_models() override {
    return database_->all<ModelRecord>(models_.select("ORDER BY name, hash"));
  }
  Result<bool> remove_model(std::string_view hash) override {
    return database_->write_counted("DELETE FROM models WHERE hash = ?", hash).map(is_any);
  }

  Result<std::vector<std::int64_t>> add_measurements(
      std::span<const MeasurementRecord> measurements) override {
    FLEETFIT_TRY(check_each(measurements));
    using Ids = std::vector<std::int64_t>;
    return database_->transaction(Transaction::write, [&](SqlConnection& one) -> Result<Ids> {
      Ids ids;
      for (const auto& measurement : measurements) {
        FLEETFIT_ASSIGN(const auto id, insert(one, measurement));
        ids.push_back(id);
      }
      return ids;
    });
  }
  Result<std::optional<MeasurementRecord>> find_measurement(std::int64_t id) override {
    return read(Operators::all, measurements_.find, id).map([](Measurements list) {
      return list.empty() ? std::nullopt : std::optional(std::move(list.front()));
    });
  }
  Result<std::vector<MeasurementRecord>> list_measurements(
      const MeasurementFilter& filter) override {
    const auto query = query_of(filter);
    return read(filter.operators ? Operators::all : Operators::none, query.sql, query.values);
  }
  Result<std::vector<MeasurementRecord>> list_measurements_after(std::int64_t id,
                                                                 std::size_t limit) override {
    return read(Operators::all, measurements_.select("WHERE id > ? ORDER BY id LIMIT ?"), id,
                limit);
  }
  Result<bool> remove_measurement(std::int64_t id) override {
    return database_->write_counted("DELETE FROM measurements WHERE id = ?", id).map(is_any);
  }

  Status save_kernel_choices(std::span<const KernelChoiceRecord> choices) override {
    FLEETFIT_TRY(check_each(choices));
    return database_->transaction(Transaction::write, [&](SqlConnection& one) -> Status {
      for (const auto& choice : choices) FLEETFIT_TRY(one.write(kernel_choices_.save, choice));
      return {};
    });
  }
  Result<std::vector<KernelChoiceRecord>> list_kernel_choices(std::string_view cpu) override {
    return database_->all<KernelChoiceRecord>(kernel_choices_.select("WHERE cpu = ? ORDER BY key"),
                                              cpu);
  }
  Result<std::vector<std::string>> list_kernel_cpus() override {
    return database_->all<std::string>("SELECT DISTINCT cpu FROM kernel_choices ORDER BY cpu");
  }
  Result<std::int64_t> remove_kernel_choices(std::string_view cpu) override {
    return database_->write_counted("DELETE FROM kernel_choices WHERE cpu = ?", cpu);
  }

  StudyStore& studies() override { return *studies_; }
  FleetStore& fleet() override { return *fleet_; }

 private:
  using Measurements = std::vector<MeasurementRecord>;
  enum class Operators { none, all };

  static bool is_any(std::int64_t count) { return count > 0; }

  // Its id.
  Result<std::int64_t> insert(SqlConnection& connection,
                              const MeasurementRecord& measurement) const {
    FLEETFIT_ASSIGN(const auto id,
                    connection.first<std::int64_t>(insert_measurement_, without_id(measurement)));
    std::int64_t position = 0;
    for (const auto& op : measurement.operators)
      FLEETFIT_TRY(connection.write(insert_operator_, id.value(), position++, op));
    return *id;
  }

  template <class... Values>
  Result<Measurements> read(Operators operators, std::string_view sql, const Values&... values) {
    return database_->transaction(
        Transaction::read, [&](SqlConnection& one) -> Result<Measurements> {
          FLEETFIT_ASSIGN(auto list, one.all<MeasurementRecord>(sql, values...));
          if (operators == Operators::none) return list;
          for (auto& measurement : list) {
            FLEETFIT_ASSIGN(measurement.operators,
                            one.all<OperatorTime>(list_operators_, measurement.id));
          }
          return list;
        });
  }

  const SqlTable<DeviceRecord> devices_{"devices"};
  const SqlTable<ModelRecord> models_{"models"};
  const SqlTable<KernelChoiceRecord> kernel_choices_{"kernel_choices", 2};
  const SqlTable<MeasurementRecord> measurements_{"measurements"};
  const std::string insert_measurement_ =
      insert_into("measurements", columns_of<MeasurementRecord>().without_id()) + " RETURNING id";
  const std::string insert_operator_ =
      insert_into("operators", columns_of<OperatorTime>().behind({"measurement", "position"}));
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
