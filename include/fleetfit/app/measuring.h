#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/devices.h"
#include "fleetfit/app/models.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/measure.h"
#include "fleetfit/space/design.h"
#include "fleetfit/store/records.h"
#include "fleetfit/tune/executor.h"

/// Use cases of measuring: models on devices, and tables of what was measured.
namespace fleetfit::app {

struct MeasureRequest {
  std::vector<std::filesystem::path> models = {};
  ModelOptions options = {};  ///< for all of them
  std::vector<std::string> devices = {std::string(kLocalDevice)};
  measure::Protocol protocol = {};
  int threads = 1;  ///< for preparing models
  /// For machines without a sensor of energy: what their cores take.
  std::optional<measure::PowerModel> power = std::nullopt;
};

/// A model on a device.
struct MeasuredModel {
  std::string model = {};  ///< the file, as it was asked for
  measure::Measurement measurement = {};
  /// Against the first device, if there are several; rounds = 0 if one of the two has
  /// failed or they were not measured in turns.
  std::optional<measure::Comparison> against_first = std::nullopt;
  std::string energy_meter = {};  ///< which one was used, or why there is none
};

/// Measures every model on every device, the devices of a model in turns (those with a share of CPU
/// time alone, as waiting would give it back to them). What was measured is kept
/// in the store model by model, with the kernels that the engine has found best. A float model is
/// quantized for devices of int8.
///
/// What goes wrong with one model on one device is a failed measurement. Fails before anything is
/// measured on models that cannot be read, devices that do not exist or have changed, and a
/// protocol that makes no sense; fails with `io` if the store cannot be written. When stopped, the
/// models that were not finished are missing, or failed with the reason "cancelled" and not kept.
Result<std::vector<MeasuredModel>> measure_models(Workplace& workplace,
                                                  const MeasureRequest& request,
                                                  core::Progress& progress,
                                                  const std::stop_token& stop);

/// The contract of `fleetfit measure`; operators if they were asked for.
nlohmann::ordered_json to_json(const MeasuredModel& measured);
nlohmann::ordered_json to_json(const std::vector<MeasuredModel>& measured);

/// What `to_json` of a measured model says: for measurements that another machine has made. Fails
/// with `invalid_input`, naming the field.
Result<measure::Measurement> read_measured(const core::JsonView& measured);

/// Designs of a space on devices.
struct DesignsRequest {
  std::string space = {};
  std::size_t samples = 0;  ///< how many designs
  std::size_t first = 0;    ///< number of the first one, from 0
  std::uint64_t seed = 1;   ///< of the designs
  std::vector<std::string> devices = {std::string(kLocalDevice)};
  measure::Protocol protocol = {};
  int threads = 1;  ///< for preparing models
  std::optional<measure::PowerModel> power = std::nullopt;
  /// Measure again what did not settle, or, without a number of sessions, of which no two agree.
  bool retry_unstable = false;
  /// How often each is measured on each device: all once, then all again, so that the sessions of a
  /// design lie apart; they share the time of the protocol. At least 1. Nothing: eight share it,
  /// and a design is done when its two fastest agree within twice the protocol's target.
  std::optional<int> sessions = 1;
  /// These designs instead of random ones; samples, first and seed are then not looked at.
  std::optional<space::Population> designs = std::nullopt;
};

/// A design on a device.
struct MeasuredDesign {
  std::size_t number = 0;  ///< of the design among those of the seed, or those asked for
  bool known = false;      ///< measured earlier
  measure::Measurement record = {};
};

/// Sees to it that these designs are measured on every device, and gives what is known of them:
/// for each design in order, one for each device in order; of several sessions the
/// fastest, with the least time of each operator. A design that was measured on a device
/// of the same fingerprint (`ok` or `unstable`; with operators if the protocol asks for them) is
/// not measured again; one that failed is tried again. What was measured is kept design by design,
/// so that work that was stopped or killed goes on where it was.
///
/// Tells beforehand, as a message of the progress, how long it will take or why nothing is to be
/// measured, and how long once more when some designs were measured. Operators are given if the
/// protocol asks for them. Fails as `measure_models` does, and on a space that does not exist or
/// has not as many designs; a device that cannot be started any more ends the work with an error.
/// When stopped, the designs that were not measured are missing.
Result<std::vector<MeasuredDesign>> measure_designs(Workplace& workplace,
                                                    const DesignsRequest& request,
                                                    core::Progress& progress,
                                                    const std::stop_token& stop);

/// What is known of these designs on devices of these names, whatever their fingerprints; or of
/// these fingerprints alone, one for each device.
Result<std::vector<MeasuredDesign>> find_measured_designs(
    Workplace& workplace, const DesignsRequest& request,
    std::vector<std::string> fingerprints = {});

/// A campaign in pieces that are measured elsewhere.
struct CampaignJobs {
  /// Measures designs and keeps them in the same store; `--first N --samples N` are added.
  std::vector<std::string> command = {};
  std::size_t designs_of_each = 8;
  int attempts = 3;  ///< of a piece whose process is killed
};

/// Sees to it that the designs of a request are measured by processes of the executor, which is
/// borrowed, and gives what is known of them then. A device is one of that name where the process
/// runs. When stopped, what was measured is kept.
Result<std::vector<MeasuredDesign>> measure_designs_elsewhere(
    Workplace& workplace, const DesignsRequest& request, const CampaignJobs& jobs,
    tune::Executor& executor, core::Progress& progress, const std::stop_token& stop);

/// As short as the contract allows.
nlohmann::ordered_json to_json(const MeasuredDesign& measured);
nlohmann::ordered_json to_json(const std::vector<MeasuredDesign>& measured);

struct ExportSummary {
  std::string output;
  std::size_t rows = 0;
  std::vector<std::string> devices = {};
};

/// Writes a table with a row for each model (columns `model` and `hash`) and a column for each
/// device: the median of the newest good measurement in ms, empty where there is none. A device
/// that was replaced has the measurements of the newest device of that name alone.
Result<ExportSummary> export_measurements(Workplace& workplace, const std::filesystem::path& file);

/// The same for the designs of a space: its key columns in place of model and hash. Unstable
/// measurements are in it as well. `not_found` if there is no such space.
Result<ExportSummary> export_designs(Workplace& workplace, std::string_view space,
                                     const std::filesystem::path& file);

/// Writes a row for each operator of the newest good measurement with operators of each model on
/// each device.
Result<ExportSummary> export_operators(Workplace& workplace, const std::filesystem::path& file);

nlohmann::ordered_json to_json(const ExportSummary& summary);

}  // namespace fleetfit::app
