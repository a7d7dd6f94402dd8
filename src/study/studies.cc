#include "fleetfit/study/studies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "fleetfit/core/file.h"
#include "study/page.h"
#include "study/sample.h"

namespace fleetfit::study {
namespace {

using store::TrialState;

constexpr std::size_t kBestShown = 5;
/// Trials that a page is made from.
constexpr std::size_t kSampled = 10'000;

store::Time now(const core::Clock& clock) {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(clock.date());
}

Result<StudySummary> summarize(store::StudyStore& store, store::StudyRecord record) {
  StudySummary summary{.study = std::move(record)};
  FLEETFIT_ASSIGN(summary.trials, store.count_trials(summary.study.name));
  FLEETFIT_ASSIGN(const auto best, store.best_trials(summary.study.name, 1));
  if (!best.empty() && !best.front().levels.empty())
    summary.best_accuracy = best.front().levels.back().accuracy;
  return summary;
}

// --- best ---

/// The first limit that a trial breaks, for people.
std::string broken_by(const tune::Study& study, const SeenTrial& seen) {
  if (seen.trial.inference)
    if (auto broken = tune::broken_limit(study, *seen.trial.inference)) return *broken;
  const auto& result = seen.view.result;
  if (result && study.constraints.accuracy && result->accuracy < *study.constraints.accuracy)
    return fmt::format("accuracy {:.4g}, at least {:.4g}", result->accuracy,
                       *study.constraints.accuracy);
  return "";
}

/// Nearest to the best of each objective, which are scaled to their range in the set.
const SeenTrial* knee_of(const std::vector<const SeenTrial*>& set) {
  const SeenTrial* knee = nullptr;
  double nearest = std::numeric_limits<double>::infinity();
  for (const auto* seen : set) {
    double distance = 0;
    for (std::size_t i = 0; i < seen->minimized.size(); ++i) {
      const auto value = [i](const SeenTrial* one) { return one->minimized[i]; };
      const auto [low, high] = std::ranges::minmax(set, {}, value);
      const double range = value(high) - value(low);
      if (range > 0) distance += std::pow((value(seen) - value(low)) / range, 2);
    }
    if (distance < nearest) {
      nearest = distance;
      knee = seen;
    }
  }
  return knee;
}

Status find_pareto(store::StudyStore& store, const OpenedStudy& opened, BestOfStudy& best) {
  FLEETFIT_ASSIGN(const auto trials, pareto_of_all(store, opened));
  const auto set = pareto_of(trials);
  for (const auto* seen : set) best.pareto.push_back(candidate_of(opened, *seen));
  if (const auto* knee = knee_of(set)) best.best = candidate_of(opened, *knee);
  return {};
}

Status find_single(store::StudyStore& store, const OpenedStudy& opened, BestOfStudy& best) {
  auto records = store.best_trials(opened.record.name, 1);
  FLEETFIT_TRY(records);
  if (records->empty()) return {};
  FLEETFIT_ASSIGN(auto seen, see_trial(opened, std::move(records->front())));
  best.best = candidate_of(opened, seen);
  return {};
}

const SeenTrial* nearest_of(const std::vector<SeenTrial>& trials) {
  const SeenTrial* nearest = nullptr;
  for (const auto& seen : trials) {
    if (!seen.view.result || seen.view.record.state == TrialState::failed) continue;
    if (nearest == nullptr || seen.view.violation < nearest->view.violation) nearest = &seen;
  }
  return nearest;
}

/// Why there is no best trial, and which is nearest to the limits.
Status explain_none(store::StudyStore& store, const OpenedStudy& opened, BestOfStudy& best) {
  FLEETFIT_ASSIGN(const auto sample, sample_study(store, opened, kSampled));
  const auto& counts = sample.counts;
  if (counts.all() == 0) {
    best.why_none = "it has no trials yet";
    return {};
  }
  const auto* nearest = nearest_of(sample.trials);
  if (nearest == nullptr) {
    best.why_none = fmt::format("none of its {} trials has a result yet ({} failed)", counts.all(),
                                counts.failed);
    return {};
  }
  best.nearest = candidate_of(opened, *nearest);
  const auto broken = broken_by(opened.study, *nearest);
  best.why_none =
      broken.empty()
          ? fmt::format("the objective of none of its {} trials is known yet", counts.all())
          : fmt::format("none of its {} trials keeps the limits; nearest is trial {}: {}",
                        counts.all(), nearest->trial.number, broken);
  return {};
}

}  // namespace

std::string_view status_name(TrialState state) {
  switch (state) {
    case TrialState::queued:
    case TrialState::paused:
      return "waiting";
    case TrialState::running:
      return "running";
    case TrialState::finished:
      return "finished";
    case TrialState::stopped:
      return "stopped";
    case TrialState::failed:
      break;
  }
  return "failed";
}

std::string goal_label(const tune::Goal& goal) {
  struct Label {
    std::string_view what;
    std::string_view unit = {};
  };
  constexpr std::array<Label, 9> kLabels = {{{"accuracy"},
                                             {"loss"},
                                             {"latency", "ms"},
                                             {"throughput", "samples/s"},
                                             {"energy", "mJ"},
                                             {"training time", "s"},
                                             {"training energy", "J"},
                                             {"(training + inference time) / accuracy"},
                                             {"(training + inference energy) / accuracy"}}};
  if (goal.metric == tune::Metric::other) return goal.name;
  const auto& [what, unit] = kLabels[static_cast<std::size_t>(goal.metric)];
  if (unit.empty()) return std::string(what);
  return goal.device.empty() ? fmt::format("{}, {}", what, unit)
                             : fmt::format("{} on {}, {}", what, goal.device, unit);
}

std::vector<std::string> objective_labels(const tune::Study& study) {
  std::vector<std::string> labels;
  for (const auto& goal : study.objective.goals) labels.push_back(goal_label(goal));
  if (!study.objective.weighted_sum) return labels;
  return {fmt::format("weighted sum of {}", fmt::join(labels, " and "))};
}

std::vector<double> as_the_user_counts(const tune::Study& study, std::vector<double> values) {
  if (study.objective.weighted_sum) return values;
  for (std::size_t i = 0; i < std::min(values.size(), study.objective.goals.size()); ++i)
    if (study.objective.goals[i].maximize) values[i] = -values[i];
  return values;
}

Result<std::vector<StudySummary>> list_studies(store::StudyStore& store) {
  FLEETFIT_ASSIGN(auto records, store.list_studies());
  std::vector<StudySummary> summaries;
  for (auto& record : records) {
    FLEETFIT_ASSIGN(auto summary, summarize(store, std::move(record)));
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

Result<StudySummary> create_study(const StudyPlace& place, const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(auto text, core::read_file(file));
  FLEETFIT_ASSIGN(const auto study, tune::parse_study(text, file.string()));
  StudySummary summary;
  summary.study = {.name = study.name,
                   .definition = std::move(text),
                   .seed = study.seed,
                   .created = now(place.clock)};
  FLEETFIT_TRY(place.studies.create_study(summary.study));
  return summary;
}

Status remove_study(store::StudyStore& store, std::string_view name) {
  FLEETFIT_ASSIGN(const auto removed, store.remove_study(name));
  if (!removed) return fail(ErrorCode::not_found, fmt::format("there is no study {}", name));
  return {};
}

Result<StudyView> show_study(store::StudyStore& store, std::string_view name,
                             const ShowOptions& options) {
  auto opened = open_study(store, name);
  FLEETFIT_TRY(opened);
  StudyView view;
  FLEETFIT_ASSIGN(const auto counts, store.count_trials(name));
  view.counts = counts;
  const auto newest = std::int64_t{kTrialsShown};
  const auto first = options.all ? 0 : std::max<std::int64_t>(0, counts.all() - newest);
  FLEETFIT_ASSIGN(auto records,
                  store.list_trials(name, first, static_cast<std::size_t>(counts.all() - first),
                                    store::LevelDetail::all));
  FLEETFIT_ASSIGN(auto seen, see_trials(*opened, std::move(records)));
  view.rungs = rungs_of(seen);
  for (auto& one : seen) view.trials.push_back(std::move(one.view));
  FLEETFIT_ASSIGN(auto best, store.best_trials(name, kBestShown));
  FLEETFIT_ASSIGN(auto best_seen, see_trials(*opened, std::move(best)));
  for (auto& one : best_seen) view.best.push_back(std::move(one.view));
  FLEETFIT_ASSIGN(const auto tunings, store.list_inferences(name));
  view.inference_tunings = tunings.size();
  view.record = std::move(opened->record);
  view.study = std::move(opened->study);
  return view;
}

Result<BestOfStudy> best_of_study(store::StudyStore& store, std::string_view name) {
  auto opened = open_study(store, name);
  FLEETFIT_TRY(opened);
  BestOfStudy best;
  const bool several = opened->study.objective.count() > 1;
  FLEETFIT_TRY(several ? find_pareto(store, *opened, best) : find_single(store, *opened, best));
  if (!best.best) FLEETFIT_TRY(explain_none(store, *opened, best));
  best.record = std::move(opened->record);
  best.study = std::move(opened->study);
  return best;
}

Result<WrittenReport> report_study(store::StudyStore& store, std::string_view name,
                                   const std::filesystem::path& output) {
  StudyPageInput input;
  FLEETFIT_ASSIGN(auto opened, open_study(store, name));
  FLEETFIT_ASSIGN(auto sample, sample_study(store, opened, kSampled));
  FLEETFIT_ASSIGN(auto tunings, store.list_inferences(name));
  if (opened.study.objective.count() == 1) {
    FLEETFIT_ASSIGN(auto records, store.best_trials(name, 1));
    if (!records.empty()) input.best = records.front().number;
  } else if (const auto* knee = knee_of(pareto_of(sample.trials))) {
    input.best = knee->view.record.number;
  }
  input.opened = std::move(opened);
  input.sample = std::move(sample);
  input.tunings = std::move(tunings);
  const auto page = study_page(input);
  FLEETFIT_TRY(core::write_file(output, page));
  return WrittenReport{.file = output.string(),
                       .bytes = page.size(),
                       .trials = input.sample.counts.all(),
                       .trials_seen = static_cast<std::int64_t>(input.sample.trials.size())};
}

}  // namespace fleetfit::study
