#include "tests/study/example_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "fleetfit/core/random.h"
#include "study/sample.h"

namespace fleetfit::study {
namespace {

using store::TrialState;

constexpr std::array kWorkers = {"host:101", "host:102", "host:103", "host:104"};
constexpr std::array kFailures = {
    "exit status 1: RuntimeError: CUDA out of memory. Tried to allocate 1.2 GiB",
    "no result: its output ended without a line {\"result\": ...}",
    "accuracy: nan is not a finite number"};

template <class T>
void must_succeed(const Result<T>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

store::Time at(double seconds) {
  using std::chrono::milliseconds;
  return store::Time(milliseconds(1'790'000'000'000 + std::llround(1000 * seconds)));
}

std::string structure_of(const nlohmann::json& params) {
  return fmt::format("network-{}-{}", params["layers"].get<int>(), params["width"].get<double>());
}

double work_of(const nlohmann::json& params) {
  return params["layers"].get<double>() / 18 * std::pow(params["width"].get<double>(), 2);
}

/// What the network reaches when it is trained for ever.
double peak_accuracy(const nlohmann::json& params, core::Random& random) {
  const double rate = std::log10(params["learning_rate"].get<double>());
  const double best_rate = params["optimizer"] == "adam" ? -3.0 : -1.7;
  double peak = 0.8 + 0.04 * std::log2(work_of(params) + 0.2);
  peak -= 0.05 * std::pow(rate - best_rate, 2);
  peak -= 0.008 * std::pow(std::log2(params["batch_size"].get<double>() / 96), 2);
  if (params.contains("momentum"))
    peak -= 0.1 * std::pow(params["momentum"].get<double>() - 0.9, 2);
  return std::clamp(peak + 0.01 * random.normal(), 0.05, 0.99);
}

class Maker {
 public:
  Maker(const tune::Study& study, std::uint64_t seed)
      : study_(study), random_(seed), levels_(tune::levels(study.budget)) {}

  store::TrialRecord make(std::int64_t number, std::int64_t count) {
    const auto point = study_.parameters.sample(random_);
    const nlohmann::json params(study_.parameters.to_json(point));
    store::TrialRecord record{.number = number,
                              .params = study_.parameters.to_json(point).dump(),
                              .bracket = number % 3 == 0 ? 1 : 0,
                              .attempts = 1};
    record.level = std::min<std::int64_t>(record.bracket, std::ssize(levels_) - 1);
    if (number >= count - 2) return record;  // queued
    if (random_.chance(0.04)) return failed(record);
    record.structure = structure_of(params);
    record.model_file = fmt::format("checkpoints/{}/out.onnx", number);
    train(record, params);
    if (number >= count - 5 && record.state == TrialState::stopped) {
      record.state = TrialState::running;
      record.reason.clear();
      record.level += 1;
    }
    return record;
  }

 private:
  store::TrialRecord failed(store::TrialRecord record) {
    record.state = TrialState::failed;
    record.reason = kFailures[random_.below(kFailures.size())];
    return record;
  }

  void train(store::TrialRecord& record, const nlohmann::json& params) {
    const double peak = peak_accuracy(params, random_);
    for (;; ++record.level) {
      record.levels.push_back(level_of(record, peak, work_of(params)));
      if (record.level + 1 == std::ssize(levels_)) {
        record.state = TrialState::finished;
        return;
      }
      if (random_.uniform() > std::clamp(4 * (peak - 0.62), 0.05, 0.85)) break;
    }
    record.state = TrialState::stopped;
    record.reason = fmt::format("others were better at level {}", record.level);
  }

  store::LevelRecord level_of(store::TrialRecord& record, double peak, double work) {
    const auto& budget = levels_[static_cast<std::size_t>(record.level)];
    const double effort = static_cast<double>(budget.epochs) * budget.data_fraction;
    const double seconds = 3 + 4 * work * effort * random_.uniform(0.9, 1.1);
    auto& free_at = *std::ranges::min_element(free_at_);
    const double start = free_at;
    free_at += seconds + 0.5;
    record.worker = kWorkers[static_cast<std::size_t>(&free_at - free_at_.data())];
    const double accuracy = peak * (1 - std::exp(-0.9 * effort - 0.7));
    return {.level = record.level,
            .epochs = budget.epochs,
            .data_fraction = budget.data_fraction,
            .accuracy = accuracy,
            .loss = 2 * (1 - accuracy),
            .training_s = seconds,
            .training_j = 18 * seconds,
            .worker = record.worker,
            .started = at(start),
            .ended = at(start + seconds)};
  }

  const tune::Study& study_;
  core::Random random_;
  std::vector<tune::Budget> levels_;
  std::array<double, kWorkers.size()> free_at_ = {};
};

void save_inference(store::StudyStore& store, const tune::Study& study,
                    const nlohmann::json& params) {
  for (const auto& device : study.inference->devices) {
    const double one_ms = (device == "phone" ? 28 : 4) * work_of(params) + 1;
    tune::InferenceTrial chosen;
    chosen.setting = {.batch = device == "phone" ? 4 : 8, .cores = 2};
    chosen.cost = tune::InferenceCost{.cost = {.latency_ms = one_ms, .energy_mj = 9 * one_ms},
                                      .spread_ms = 0.02 * one_ms,
                                      .energy_source = "modelled"};
    chosen.response = {.mean_ms = 2.2 * one_ms,
                       .p95_ms = 4 * one_ms,
                       .p99_ms = 4.4 * one_ms,
                       .throughput = 32,
                       .busy = 0.3,
                       .energy_mj = 2 * one_ms};
    tune::InferenceResult result{.best = 0, .trials = {chosen}, .elapsed_s = 4};
    must_succeed(store.save_inference(
        {.structure = structure_of(params),
         .device_fingerprint = device + "-fingerprint",
         .question = tune::question_key(*study.inference, study.algorithm.inference),
         .device = device,
         .result = tune::to_json(result).dump(),
         .elapsed_s = 4,
         .study = study.name,
         .found = at(5)}));
  }
}

}  // namespace

std::string several_objectives() {
  std::string text(kExampleStudy);
  const std::string one = "objective: {kind: ratio, of: time}";
  text.replace(text.find(one), one.size(),
               "objective: [{maximize: accuracy}, {minimize: latency, device: phone}]");
  const std::string name = "name: fashion";
  return text.replace(text.find(name), name.size(), "name: pareto");
}

void fill_study(store::Store& store, std::string_view definition, const ExampleTrials& trials) {
  auto& studies = store.studies();
  const auto study = tune::parse_study(definition, "example").value();
  must_succeed(studies.create_study(
      {.name = study.name, .definition = std::string(definition), .created = at(0)}));
  for (const int layers : {18, 34, 50})
    for (const double width : {0.5, 0.75, 1.0})
      save_inference(studies, study, {{"layers", layers}, {"width", width}});
  const auto opened = open_study(studies, study.name).value();
  Maker maker(study, trials.seed);
  constexpr std::int64_t kBatch = 10'000;
  for (std::int64_t first = 0; first < trials.count; first += kBatch) {
    std::vector<store::TrialRecord> batch;
    for (std::int64_t i = first; i < std::min(trials.count, first + kBatch); ++i) {
      auto seen = see_trial(opened, maker.make(i, trials.count)).value();
      if (is_feasible(seen)) seen.view.record.score = seen.minimized.front();
      batch.push_back(std::move(seen.view.record));
    }
    must_succeed(studies.add_trials(study.name, batch));
  }
  must_succeed(studies.update_study(study.name, 1830, 51'000.0, false));
}

}  // namespace fleetfit::study
