#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/tune/budget.h"
#include "fleetfit/tune/parameters.h"
#include "fleetfit/tune/resources.h"
#include "fleetfit/tune/scenario.h"

/// A study: what is tuned, for what, and within which limits (docs/formats/study.md).
namespace fleetfit::tune {

/// What trains: a program that speaks the trial protocol, a built-in workload, or neither: callers
/// that ask for trials evaluate them.
struct Workload {
  std::vector<std::string> command = {};
  std::string builtin = {};
  /// The program takes a budget of 0 epochs: it writes the untrained network and ends. Built-in
  /// ones do. Then inference is tuned before training begins.
  bool writes_untrained = false;
  double timeout_s = 0;                                     ///< of a level; 0: none
  std::optional<std::int64_t> memory_bytes = std::nullopt;  ///< of a trial

  bool operator==(const Workload&) const = default;
};
core::Fields fields_of(const Workload*);

enum class InferenceGoal : std::uint8_t { latency, throughput, energy };
core::Names names_of(InferenceGoal);

struct InferenceStudy {
  std::vector<std::string> devices = {};  ///< names of devices, or `predictor:FILE`
  Parameters parameters = {};             ///< batch_size, cores, threads, precision
  Scenario scenario = {};
  InferenceGoal goal = InferenceGoal::latency;

  bool operator==(const InferenceStudy&) const = default;
};
core::Fields fields_of(const InferenceStudy*);

enum class Metric : std::uint8_t {
  accuracy,
  loss,
  latency,          ///< of inference on a device, ms; in server and multistream: mean response
  throughput,       ///< of inference on a device, samples per second
  energy,           ///< of inference on a device, mJ per sample
  training_time,    ///< s
  training_energy,  ///< J
  ratio_of_time,    ///< (training time + inference time) / accuracy
  ratio_of_energy,  ///< (training energy + inference energy) / accuracy
  other,            ///< any number that the trial's result has; `name`
};

/// Whether it is a number of inference on a device alone.
constexpr bool is_of_inference(Metric metric) {
  return metric == Metric::latency || metric == Metric::throughput || metric == Metric::energy;
}

/// Whether it is the paper's, of training and inference together.
constexpr bool is_ratio(Metric metric) {
  return metric == Metric::ratio_of_time || metric == Metric::ratio_of_energy;
}

struct Goal {
  Metric metric = Metric::accuracy;
  std::string name = {};    ///< of Metric::other
  std::string device = {};  ///< of inference metrics; empty: the mean over all devices
  bool maximize = false;
  double weight = 1;  ///< in a weighted sum

  bool operator==(const Goal&) const = default;
};

struct Objective {
  std::vector<Goal> goals = {};
  bool weighted_sum = false;  ///< several goals make one number; otherwise a Pareto set

  std::size_t count() const { return weighted_sum ? 1 : goals.size(); }
  bool operator==(const Objective&) const = default;
};

struct Constraints {
  std::optional<double> accuracy = std::nullopt;  ///< at least
  struct PerDevice {
    std::string device = {};
    Metric metric = Metric::latency;  ///< latency or energy: at most
    double limit = 0;
    bool operator==(const PerDevice&) const = default;
  };
  std::vector<PerDevice> devices = {};

  bool operator==(const Constraints&) const = default;
};

enum class SamplerKind : std::uint8_t { random, grid, tpe, bohb, nsga2 };
core::Names names_of(SamplerKind);
enum class SchedulerKind : std::uint8_t { none, successive_halving, hyperband, asha, median };
core::Names names_of(SchedulerKind);

struct Algorithm {
  SamplerKind sampler = SamplerKind::bohb;
  SchedulerKind scheduler = SchedulerKind::hyperband;
  SamplerKind inference = SamplerKind::grid;
  bool hierarchical = false;  ///< inference is tuned for the best network only, at the end

  bool operator==(const Algorithm&) const = default;
};

struct Study {
  std::string name = {};
  Workload workload = {};
  Parameters parameters = {};  ///< groups model, training and system
  std::optional<InferenceStudy> inference = std::nullopt;
  Objective objective = {};
  Constraints constraints = {};
  BudgetOptions budget = {};
  Algorithm algorithm = {};
  Resources resources = {};  ///< of each worker, on a cluster
  std::uint64_t seed = 1;

  bool operator==(const Study&) const = default;
};
core::Fields fields_of(const Study*);

/// Reads a study file. Every error is `invalid_input` and starts with file, line and key:
/// "a.yaml:14: budget.max_epochs: 1 is less than min_epochs (2)".
/// `algorithm.model` names a pair: bohb = BOHB's sampler under HyperBand, tpe and random and grid
/// and nsga2 without stopping, hyperband and asha and median and halving with random designs; or it
/// is {sampler: …, scheduler: …}.
Result<Study> parse_study(std::string_view text, std::string_view file);
Result<Study> read_study(const std::filesystem::path& file);
/// The same of the section `resources` alone, such as "{cores: 2, partition: gpu}".
Result<Resources> parse_resources(std::string_view text, std::string_view name);

}  // namespace fleetfit::tune
