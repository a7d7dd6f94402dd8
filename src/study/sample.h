#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/study/studies.h"
#include "study/history.h"

/// Reading a study for people: whole if it is small, else as much as takes a fraction of a second.
namespace fleetfit::study {

/// A study with its file read and its place in the store.
struct OpenedStudy {
  store::StudyRecord record = {};
  tune::Study study = {};
  KnownInference known = {};
};

/// The study of that name; `not_found` if there is none.
Result<OpenedStudy> open_study(store::StudyStore& store, std::string_view name);

/// A trial with its record.
struct SeenTrial {
  TrialView view = {};
  tune::Trial trial = {};
  std::vector<double> minimized = {};  ///< the objective's numbers; empty if not known
};

/// Its objective is known and it keeps all limits.
bool is_feasible(const SeenTrial& seen);

/// It was trained to the end.
bool is_trained(const SeenTrial& seen);

/// The trials of which the best one is chosen: the feasible ones; once some of them were trained to
/// the end, those alone.
std::vector<const SeenTrial*> candidates_of(std::span<const SeenTrial> trials);

/// Every so-many-th, so that at most `most` are left.
template <class T>
std::vector<T> thinned(std::vector<T> items, std::size_t most) {
  if (items.size() <= most) return items;
  std::vector<T> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(items[i * items.size() / most]);
  return kept;
}

Result<SeenTrial> see_trial(const OpenedStudy& opened, store::TrialRecord record);
Result<std::vector<SeenTrial>> see_trials(const OpenedStudy& opened,
                                          std::vector<store::TrialRecord> records);

/// Trials by number.
struct StudySample {
  std::vector<SeenTrial> trials = {};
  store::TrialCounts counts = {};
  bool is_whole = true;  ///< false: some trials were left out
};

/// All trials of a study with at most `most`. Of a larger one: the first ones, the last ones, the
/// best ones and pieces of equal length in between, `most` in all.
Result<StudySample> sample_study(store::StudyStore& store, const OpenedStudy& opened,
                                 std::size_t most);

/// From the levels that trials have ended.
std::vector<RungView> rungs_of(std::span<const SeenTrial> trials);

Candidate candidate_of(const OpenedStudy& opened, const SeenTrial& seen);

/// Of the candidates those that none dominates, by the first objective: early results have cost
/// less and are no fair match for those of the largest budget.
std::vector<const SeenTrial*> pareto_of(std::span<const SeenTrial> trials);

/// The trials that `pareto_of` would find among all of a study, however many there are. Keeps only
/// those in memory.
Result<std::vector<SeenTrial>> pareto_of_all(store::StudyStore& store, const OpenedStudy& opened);

nlohmann::ordered_json tuning_json(const store::StudyRecord& study);
nlohmann::ordered_json counts_json(const store::TrialCounts& counts);
nlohmann::ordered_json rung_json(const RungView& rung);
/// `labels` are those of the objective's numbers.
nlohmann::ordered_json trial_json(const std::vector<std::string>& labels, const TrialView& trial);

}  // namespace fleetfit::study
