#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/sources.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/learned/answer.h"
#include "fleetfit/learned/model.h"

/// Learning to optimize: train once on many devices, answer for any other at once.
namespace fleetfit::app {

/// What is learned from.
struct LearnData {
  std::string space = {};
  std::filesystem::path table = {};            ///< latencies by design and device; may be empty
  std::filesystem::path energy_table = {};     ///< energies, in the same form; may be empty
  std::filesystem::path device_features = {};  ///< docs/formats/device_features.md
  std::string accuracy = {};                   ///< a source
  /// Devices to learn from; none: all that are in the table and in the features.
  std::vector<std::string> devices = {};
  /// Devices that are not columns of the table, with a source of their latencies.
  std::map<std::string, std::string> measured = {};
  SourceOptions sources = {};
};

/// How fleetfit-train is to train.
struct LearnTraining {
  std::string method = "supervised";  ///< or "unsupervised"
  std::string compute = "cpu";
  std::size_t members = 5;
  std::size_t optimizers = 2;
  double effort = 1;
  std::uint64_t seed = 1;
  int threads = 1;
};

/// Which designs to measure: some by chance, then, round by round, those on which the networks
/// disagree.
struct LearnExploration {
  std::size_t first = 0;  ///< 0: all of the table at once
  std::size_t rounds = 0;
  std::size_t each = 50;  ///< designs of a round
};

struct LearnTrainRequest {
  LearnData data = {};
  LearnTraining training = {};
  LearnExploration exploration = {};
  std::filesystem::path output = {};
};

struct LearnTrainReport {
  std::string space = {};
  std::vector<std::string> devices = {};
  std::size_t designs = 0;
  std::size_t rounds = 0;
  std::size_t measured = 0;     ///< pairs of a design and a device
  double rank_correlation = 0;  ///< on devices that a network was not trained with
  double margin = 0;            ///< safety margin, as a share of the latency
  double elapsed_s = 0;
};
core::Fields fields_of(const LearnTrainReport*);

/// Trains, by the program fleetfit-train, and writes the model. What was measured is kept beside
/// the output until it is written, so that the same request goes on after a kill. Fails with
/// `invalid_input` or `not_found`, naming file, column or device, and with `cancelled`.
Result<LearnTrainReport> learn_train(Workplace& workplace, const LearnTrainRequest& request,
                                     core::Progress& progress, const std::stop_token& stop);

struct LearnApplyRequest {
  std::filesystem::path model = {};
  std::filesystem::path device_features = {};
  std::string device = {};
  std::optional<double> budget_ms = {};
  std::optional<double> budget_mj = {};
  double sure = 0.5;                 ///< how likely budgets have to be kept
  std::vector<double> weights = {};  ///< lambda of energy and latency, or of latency alone
  bool never_search = false;         ///< keep the optimizer's answer, even in doubt
  std::uint64_t seed = 1;
  int threads = 1;
};

struct LearnApplyReport {
  const space::Space* space = nullptr;
  std::string device = {};
  std::vector<std::string> costs = {};
  learned::Answer answer = {};
  double distance = 0;      ///< of the device from the known ones, 1 is usual
  std::size_t missing = 0;  ///< features that were filled in
  double elapsed_us = 0;    ///< of the answer, without reading files
};

/// Fails with `invalid_input` or `not_found`, naming file, column, device or flag. Limits that
/// cannot be kept are no failure: the answer says so.
Result<LearnApplyReport> learn_apply(const LearnApplyRequest& request);

struct LearnBulkRequest {
  std::filesystem::path model = {};
  std::filesystem::path device_features = {};  ///< devices that synthetic ones are mixed from
  std::size_t devices = 1'000'000;
  double budget_factor = 0.8;  ///< limit of each device, relative to a typical design's latency
  std::filesystem::path output = {};  ///< a table of all answers; may be empty
  std::uint64_t seed = 1;
  int threads = 1;
};

struct LearnBulkReport {
  std::size_t devices = 0;
  std::size_t within = 0;   ///< answers that keep the limit as likely as not
  std::size_t unsure = 0;   ///< answers with a doubt
  std::size_t designs = 0;  ///< different designs among the answers
  double elapsed_s = 0;
  double answer_us = 0;  ///< of one answer on one thread, the mean
  std::int64_t peak_memory_bytes = 0;
};
core::Fields fields_of(const LearnBulkReport*);

/// Answers for many synthetic devices. Fails as `learn_apply` does.
Result<LearnBulkReport> learn_bulk(const LearnBulkRequest& request, core::Progress& progress,
                                   const std::stop_token& stop);

/// A study: devices are left out of training, and then answered for.
struct LearnEvalRequest {
  LearnData data = {};
  LearnTraining training = {};
  std::vector<std::vector<std::string>> splits = {};  ///< devices that are left out together
  std::size_t budgets = 10;                           ///< of each device and spread
  std::size_t few_shot_samples = 10;
  /// If not 0: the features are the latencies of so many designs, chosen for each split by what its
  /// known devices teach (as few-shot transfer does), instead of those of the file.
  std::size_t choose_references = 0;
  std::size_t own_samples = 900;  ///< designs of the device that a predictor of its own learns from
  bool compare = true;            ///< also with the other ways
};

/// How the budgets of a device are spread: evenly from its quickest to its slowest design, or over
/// the quantiles of its latencies, where most are tight.
enum class BudgetSpread { range, quantiles };
inline constexpr std::array kBudgetSpreads{BudgetSpread::range, BudgetSpread::quantiles};
std::string_view name_of(BudgetSpread spread);

/// How one way to choose did at one budget of one device. Accuracies and latencies are true ones.
struct LearnOutcome {
  std::string device = {};
  std::string way = {};
  BudgetSpread spread = BudgetSpread::range;
  double budget_ms = 0;
  double latency_ms = 0;
  double accuracy = 0;
  double best_accuracy = 0;  ///< of all designs within the budget
};

struct LearnedDevice {
  std::string device = {};
  std::size_t split = 0;
  double srcc = 0;           ///< of the performance networks
  double mape = 0;           ///< percent
  double few_shot_srcc = 0;  ///< of few-shot transfer from as many measurements, which it chooses
  /// Of few-shot transfer from the reference latencies among the features; none without them.
  std::optional<double> few_shot_same_srcc = {};
  double distance = 0;
};

struct LearnWay {
  std::string way = {};
  BudgetSpread spread = BudgetSpread::range;
  std::size_t cases = 0;
  double median_loss = 0;  ///< accuracy below the best, in points
  double p90_loss = 0;
  double mean_loss = 0;
  double kept = 0;       ///< share of the cases within the budget
  double answer_us = 0;  ///< mean time of one answer, without training or fitting
};

struct LearnEvalReport {
  std::string space = {};
  std::string method = {};
  std::vector<LearnedDevice> devices = {};
  std::vector<LearnWay> ways = {};
  std::vector<LearnOutcome> outcomes = {};
  std::size_t unsure = 0;  ///< answers in doubt, which a search gave
  double training_s = 0;   ///< mean of the splits
  /// What to do with devices of which so many designs can be measured; "": nothing was compared.
  std::string advice = {};
};
core::Fields fields_of(const LearnEvalReport*);

Result<LearnEvalReport> learn_eval(Workplace& workplace, const LearnEvalRequest& request,
                                   core::Progress& progress, const std::stop_token& stop);

nlohmann::ordered_json to_json(const LearnApplyReport& report);

}  // namespace fleetfit::app
