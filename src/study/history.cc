#include "study/history.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"

namespace fleetfit::study {
namespace {

Result<std::map<std::string, double>> numbers_of(const std::string& metrics,
                                                 const std::string& place) {
  std::map<std::string, double> numbers;
  if (metrics == "{}") return numbers;
  FLEETFIT_ASSIGN(const auto document, core::parse_json(metrics, place));
  FLEETFIT_ASSIGN(const auto members, core::JsonView(document, place).members());
  for (const auto& [name, value] : members)
    if (const auto number = value.as_number()) numbers[name] = *number;
  return numbers;
}

Result<std::vector<double>> epochs_of(const std::string& values, const std::string& place) {
  if (values == "[]") return std::vector<double>();
  FLEETFIT_ASSIGN(const auto document, core::parse_json(values, place));
  return core::JsonView(document, place).as_numbers();
}

/// The store has the time of each level alone, the history that of all so far.
Status add_results(const store::TrialRecord& record, const std::string& place, tune::Trial& trial) {
  double training_s = 0;
  std::optional<double> training_j = 0;
  for (const auto& level : record.levels) {
    training_s += level.training_s;
    if (training_j && level.training_j) {
      *training_j += *level.training_j;
    } else {
      training_j.reset();
    }
    FLEETFIT_ASSIGN(auto other, numbers_of(level.metrics, place));
    trial.results.push_back(
        {.level = static_cast<std::size_t>(level.level),
         .order = level.ended.time_since_epoch().count(),
         .budget = {.epochs = level.epochs, .data_fraction = level.data_fraction},
         .accuracy = level.accuracy,
         .loss = level.loss,
         .training_s = training_s,
         .training_j = training_j,
         .other = std::move(other)});
    trial.order = trial.results.back().order;
  }
  return {};
}

}  // namespace

Result<KnownInference> KnownInference::load(store::StudyStore& store, const tune::Study& study) {
  KnownInference known;
  if (!study.inference) return known;
  const auto question = tune::question_key(*study.inference, study.algorithm.inference);
  FLEETFIT_ASSIGN(const auto records, store.list_inferences(""));
  for (const auto& record : records) {
    if (record.question != question) continue;
    const auto key = std::pair(record.structure, record.device);
    if (known.answers_.contains(key)) continue;  // newest first
    const auto place = fmt::format("inference of {} on {}", record.structure, record.device);
    FLEETFIT_ASSIGN(const auto document, core::parse_json(record.result, place));
    FLEETFIT_ASSIGN(auto answer, tune::inference_result_from_json(core::JsonView(document, place)));
    known.answers_.emplace(key, std::move(answer));
  }
  known.add_recommendations(study);
  return known;
}

const tune::InferenceResult* KnownInference::find(std::string_view structure,
                                                  std::string_view device) const {
  const auto at = answers_.find({std::string(structure), std::string(device)});
  return at == answers_.end() ? nullptr : &at->second;
}

void KnownInference::add_recommendations(const tune::Study& study) {
  for (const auto& [key, answer] : answers_) {
    std::vector<tune::Inference> all;
    for (const auto& device : study.inference->devices) {
      const auto* known = find(key.first, device);
      if (known == nullptr) break;
      auto best = tune::recommendation(*known, device);
      if (!best) break;
      all.push_back(std::move(*best));
    }
    if (all.size() == study.inference->devices.size())
      recommendations_.insert_or_assign(key.first, std::move(all));
  }
}

std::optional<std::vector<tune::Inference>> KnownInference::of(const std::string& structure) const {
  const auto at = recommendations_.find(structure);
  if (at == recommendations_.end()) return std::nullopt;
  return at->second;
}

Result<tune::Trial> results_from_record(const tune::Study& study, const store::TrialRecord& record,
                                        const KnownInference& known) {
  const auto place = fmt::format("study {}, trial {}", study.name, record.number);
  tune::Trial trial{.number = static_cast<std::size_t>(record.number),
                    .bracket = static_cast<std::size_t>(record.bracket),
                    .level = static_cast<std::size_t>(record.level),
                    .state = record.state,
                    .stop_requested = record.stop_requested};
  FLEETFIT_TRY(add_results(record, place, trial));
  // Of a study that asks for nothing, all is known.
  trial.inference = study.inference ? known.of(record.structure) : std::vector<tune::Inference>();
  return trial;
}

Result<tune::Trial> trial_from_record(const tune::Study& study, const store::TrialRecord& record,
                                      const KnownInference& known) {
  auto trial = results_from_record(study, record, known);
  if (!trial) return trial;
  const auto place = fmt::format("study {}, trial {}", study.name, record.number);
  FLEETFIT_ASSIGN(const auto params, core::parse_json(record.params, place));
  FLEETFIT_ASSIGN(auto point, study.parameters.from_json(core::JsonView(params, place)));
  trial->point = std::move(point);
  if (record.levels.empty()) return trial;
  FLEETFIT_ASSIGN(auto epochs, epochs_of(record.levels.back().epoch_values, place));
  trial->epochs = std::move(epochs);
  return trial;
}

}  // namespace fleetfit::study
