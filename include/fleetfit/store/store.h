#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/fleet_store.h"
#include "fleetfit/store/records.h"
#include "fleetfit/store/study_store.h"

namespace fleetfit::store {

/// Which measurements are wanted. What is absent does not restrict.
struct MeasurementFilter {
  std::optional<std::string> device = {};  ///< its name
  std::optional<std::string> device_fingerprint = {};
  std::optional<std::string> model_hash = {};
  std::optional<std::string> space = {};
  std::optional<MeasurementStatus> status = {};
  std::optional<std::size_t> limit = {};  ///< the newest so many
  bool operators = true;                  ///< false leaves their lists empty, which is quicker
};

/// Keeps records. Safe to use from many threads. What a call has written when it returns is kept,
/// whatever happens to the process afterwards; a call that fails or is interrupted has written
/// nothing.
///
/// Every call may fail with `io` (the system refused, or another process kept the store locked) and
/// `invalid_input` (the stored data is damaged). Writing also fails with `invalid_input` on a
/// record that breaks what records.h says of its fields; the message names record and field.
class Store {
 public:
  virtual ~Store() = default;

  /// Adds a device, or replaces the one of that name.
  virtual Status save_device(const DeviceRecord& device) = 0;
  virtual Result<std::optional<DeviceRecord>> find_device(std::string_view name) = 0;
  /// All devices, by name.
  virtual Result<std::vector<DeviceRecord>> list_devices() = 0;
  /// Says whether there was one. Its measurements stay.
  virtual Result<bool> remove_device(std::string_view name) = 0;

  /// Adds a model, or replaces the one of that hash.
  virtual Status save_model(const ModelRecord& model) = 0;
  virtual Result<std::optional<ModelRecord>> find_model(std::string_view hash) = 0;
  /// All models, by name and then hash.
  virtual Result<std::vector<ModelRecord>> list_models() = 0;
  /// Says whether there was one. Its measurements stay.
  virtual Result<bool> remove_model(std::string_view hash) = 0;

  /// Adds all of them or, failing, none. Gives their new ids in the same order; the ids in the
  /// records do not matter. Many at once are much quicker than one by one.
  virtual Result<std::vector<std::int64_t>> add_measurements(
      std::span<const MeasurementRecord> measurements) = 0;
  Result<std::int64_t> add_measurement(const MeasurementRecord& measurement);
  virtual Result<std::optional<MeasurementRecord>> find_measurement(std::int64_t id) = 0;
  /// Those that were started last come first; of equal ones those that were added last.
  virtual Result<std::vector<MeasurementRecord>> list_measurements(
      const MeasurementFilter& filter) = 0;
  /// By id, those with ids above `id`, at most `limit`. To be repeated with the last one's id to go
  /// through all.
  virtual Result<std::vector<MeasurementRecord>> list_measurements_after(std::int64_t id,
                                                                         std::size_t limit) = 0;
  /// Says whether there was one.
  virtual Result<bool> remove_measurement(std::int64_t id) = 0;

  /// Adds them, replacing those of the same CPU and key: all or, failing, none.
  virtual Status save_kernel_choices(std::span<const KernelChoiceRecord> choices) = 0;
  /// All that is known of a CPU, by key.
  virtual Result<std::vector<KernelChoiceRecord>> list_kernel_choices(std::string_view cpu) = 0;
  /// Those of which something is known.
  virtual Result<std::vector<std::string>> list_kernel_cpus() = 0;
  /// Forgets what is known of a CPU and says how many there were.
  virtual Result<std::int64_t> remove_kernel_choices(std::string_view cpu) = 0;

  /// The part that keeps tuning studies; lives as long as the store.
  virtual StudyStore& studies() = 0;

  /// The part that keeps a fleet; lives as long as the store.
  virtual FleetStore& fleet() = 0;
};

/// What a store is opened for.
enum class StoreUse {
  read_and_write,
  /// As the other, but a file that cannot be written is opened as it is. Writing then fails.
  look,
};

/// Opens a store, creating it if need be:
///   memory:       a new one that lives as long as the object (SQLite without a file)
///   sqlite:PATH   a file, for several processes at once (docs/formats/store.md)
///   postgres://…  a data base of PostgreSQL, for many processes on many machines, as libpq takes
///                 it; `schema=NAME` among its parameters names another schema than `fleetfit`
/// Fails with `unsupported` for a store written by a newer fleetfit, with `invalid_input` for other
/// texts and for what is no store of fleetfit (which is left as it is), with `io` if it cannot be
/// created, read or written. No message holds a password.
Result<std::unique_ptr<Store>> open_store(std::string_view url,
                                          StoreUse use = StoreUse::read_and_write);

/// What jobs on a device work with: devices, models, measurements and kernel choices in memory,
/// which live as long as the object. It has neither studies nor a fleet, and asking for them ends
/// the program. Programs that open no other store need no data base.
std::unique_ptr<Store> open_device_store();

/// A store's URL in two parts, as what stands in a command line is seen by everybody.
struct StoreAddress {
  std::string url = {};       ///< without the password
  std::string password = {};  ///< to be given in the environment, as PGPASSWORD; empty if none
};
StoreAddress without_password(std::string_view url);

}  // namespace fleetfit::store
