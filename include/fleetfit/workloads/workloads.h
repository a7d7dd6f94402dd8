#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

namespace fleetfit::core {
struct Fields;
}

/// The trainings that come with fleetfit: their names, parameters and data, known without the
/// program that does them. docs/workloads.md describes them.
namespace fleetfit::workloads {

enum class SettingKind : std::uint8_t { integer, number, text };

/// A parameter that a workload takes.
struct Setting {
  std::string name = {};
  std::string group = {};  ///< "model" changes the network, "training", "system"
  SettingKind kind = SettingKind::integer;
  double preset = 0;             ///< of numbers
  std::string preset_text = {};  ///< of texts
  double min = 0;                ///< of numbers, included
  double max = std::numeric_limits<double>::max();
  std::vector<std::string> choices = {};  ///< of texts and numbers, as they are written; none: any
  std::string summary = {};
};

struct Workload {
  std::string name = {};
  std::string summary = {};
  std::string data_needed = {};  ///< in words
  std::string accuracy = {};     ///< what the number means
  std::vector<Setting> settings = {};
  /// What a study of it usually varies: lines of a study file, by group.
  std::map<std::string, std::vector<std::string>> usual_parameters = {};
};

/// Every built-in workload.
std::span<const Workload> all_workloads();

/// `not_found`, with the names that there are.
Result<const Workload*> find_workload(std::string_view name);

/// A study file that tunes the workload.
std::string example_study(const Workload& workload);

/// The values of a workload's parameters, those that were not given included. Asking for one that
/// the workload does not have is a bug.
class Settings {
 public:
  /// `params` is a JSON object of numbers and texts. `invalid_input`, naming the parameter, for one
  /// that the workload does not take and for a value that it cannot have.
  static Result<Settings> read(const Workload& workload, const core::JsonView& params);

  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  /// "batch_size=64 layers=18 …": the same for the same values. Those of group `system` and `data`,
  /// which say how and not what, are left out.
  std::string key() const;

 private:
  std::map<std::string, double, std::less<>> numbers_;
  std::map<std::string, std::string, std::less<>> texts_;
  std::vector<std::string> key_;
};

/// What a trial is asked to do: the document of the trial protocol.
struct TrialRequest {
  std::string study = {};
  std::int64_t trial = 0;
  Settings settings = {};
  std::int64_t epochs = 0;  ///< in all, also those before a resumption; 0: the untrained network
  double data_fraction = 1;
  std::string checkpoint_dir = {};
  bool resume = false;
};
core::Fields fields_of(const TrialRequest*);

/// Every error is `invalid_input` and names the field of FLEETFIT_TRIAL.
Result<TrialRequest> read_trial(const Workload& workload, std::string_view document);

}  // namespace fleetfit::workloads
