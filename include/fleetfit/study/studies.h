#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/study_store.h"
#include "fleetfit/study/place.h"
#include "fleetfit/tune/history.h"
#include "fleetfit/tune/inference.h"
#include "fleetfit/tune/study.h"

/// What people see of tuning studies. Calls on a study that does not exist fail with `not_found`.
namespace fleetfit::study {

/// How people call a trial's state: waiting, running, finished, stopped or failed.
std::string_view status_name(store::TrialState state);

/// What a goal counts, for people: "accuracy", "latency on local, ms".
std::string goal_label(const tune::Goal& goal);

/// Labels of the objective's numbers; a weighted sum is one.
std::vector<std::string> objective_labels(const tune::Study& study);

/// Numbers that are all to be minimized, as the user counts them: those to be maximized have
/// their sign changed back.
std::vector<double> as_the_user_counts(const tune::Study& study, std::vector<double> values);

struct StudySummary {
  store::StudyRecord study = {};
  store::TrialCounts trials = {};
  std::optional<double> best_accuracy = std::nullopt;  ///< of the best trial, if there is one
};

/// By name.
Result<std::vector<StudySummary>> list_studies(store::StudyStore& store);

/// Puts a study into the store, to be tuned by `ask` and `tell`. Fails with `invalid_input` as
/// `tune::read_study` does, and if there is a study of that name.
Result<StudySummary> create_study(const StudyPlace& place, const std::filesystem::path& file);

Status remove_study(store::StudyStore& store, std::string_view name);

/// One trial with what it means.
struct TrialView {
  store::TrialRecord record = {};
  std::string params_by_group = "{}";  ///< JSON: {"model": {…}, "training": {…}, "system": {…}}
  std::optional<tune::Budget> budget = std::nullopt;       ///< it has had, or that it is given now
  std::optional<tune::LevelResult> result = std::nullopt;  ///< of the highest level it has ended
  std::vector<double> values = {};  ///< of the objective, as the user counts; empty if not known
  double violation = 0;             ///< of the study's limits
};

/// How many trials have ended a rung, and how many went on.
struct RungView {
  std::int64_t bracket = 0;
  std::int64_t level = 0;
  tune::Budget budget = {};
  std::int64_t ended = 0;
  std::int64_t promoted = 0;
  double best_accuracy = 0;
};

struct ShowOptions {
  bool all = false;  ///< all trials, however many; otherwise the newest ones
};

/// As many trials as `show_study` gives if not asked for all.
inline constexpr std::size_t kTrialsShown = 10'000;

struct StudyView {
  store::StudyRecord record = {};
  tune::Study study = {};
  store::TrialCounts counts = {};
  std::vector<TrialView> trials = {};  ///< by number
  std::vector<TrialView> best = {};    ///< best first, some
  std::vector<RungView> rungs = {};    ///< of the trials above
  std::size_t inference_tunings = 0;  ///< done for this study; answers that were there do not count
};

/// Takes no longer with more trials, unless all are wanted.
Result<StudyView> show_study(store::StudyStore& store, std::string_view name,
                             const ShowOptions& options = {});

/// How to run a network on a device.
struct Deployment {
  std::string device = {};
  tune::InferenceTrial setting = {};
};

struct Candidate {
  TrialView trial = {};
  std::vector<Deployment> deployments = {};
  std::vector<std::string> undeployable = {};  ///< devices where nothing could be run, with why
};

struct BestOfStudy {
  store::StudyRecord record = {};
  tune::Study study = {};
  /// Nothing keeps the study's limits if it is absent.
  std::optional<Candidate> best = std::nullopt;
  /// Of a study with several objectives: the whole Pareto set, by the first objective.
  std::vector<Candidate> pareto = {};
  std::optional<Candidate> nearest = std::nullopt;  ///< to the limits, if nothing keeps them
  std::string why_none = {};                        ///< if there is no best
};

/// The best trial that keeps all limits; of trials with the largest budget if there are any. Of a
/// Pareto set the one nearest to the best of all objectives, each scaled to its range in the set.
Result<BestOfStudy> best_of_study(store::StudyStore& store, std::string_view name);

struct ExportedStudy {
  std::string file = {};
  std::int64_t trials = 0;
};

/// Writes all trials as CSV: parameters, objective, costs.
Result<ExportedStudy> export_study(store::StudyStore& store, std::string_view name,
                                   const std::filesystem::path& output);

struct WrittenReport {
  std::string file = {};
  std::size_t bytes = 0;
  std::int64_t trials = 0;       ///< of the study
  std::int64_t trials_seen = 0;  ///< that the page is made from
};

/// Writes the study as one page of HTML that needs nothing else.
Result<WrittenReport> report_study(store::StudyStore& store, std::string_view name,
                                   const std::filesystem::path& output);

nlohmann::ordered_json to_json(const StudySummary& summary);
nlohmann::ordered_json to_json(const std::vector<StudySummary>& studies);
nlohmann::ordered_json to_json(const StudyView& view);
nlohmann::ordered_json to_json(const BestOfStudy& best);
nlohmann::ordered_json to_json(const ExportedStudy& written);
nlohmann::ordered_json to_json(const WrittenReport& written);

}  // namespace fleetfit::study
