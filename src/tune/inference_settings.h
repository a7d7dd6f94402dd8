#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/tune/inference.h"

/// The settings that inference tuning chooses from, and what it knows of their costs.
namespace fleetfit::tune {

/// All settings that a question has: each combination of these. None is empty.
struct InferenceChoices {
  std::vector<std::int64_t> batches = {};  ///< in increasing order
  std::vector<std::optional<std::int64_t>> cores = {};
  std::vector<std::optional<std::int64_t>> threads = {};
  std::vector<std::optional<std::string>> precisions = {};

  std::size_t count() const {
    return batches.size() * cores.size() * threads.size() * precisions.size();
  }
};

/// The parameters must have passed the check. Long ranges are cut: those of batches at 4096
/// values, others at ten. Batches that the scenario never forms are left out.
InferenceChoices choices_of(const InferenceStudy& study);

/// The setting that a point of these parameters means.
InferenceSetting setting_of(const Parameters& parameters, std::span<const double> point);

/// Those of a long list of batches that are priced first: the nearest to the powers of two, and the
/// ends. All of a short list.
std::vector<std::int64_t> first_batches(std::span<const std::int64_t> batches);

/// What batches cost on the same cores and threads, in the same precision.
class BatchCosts {
 public:
  void add(std::int64_t batch, const BatchCost& cost) { known_[batch] = cost; }

  /// What a batch costs in the rhythm of the scenario. Batches that are known without it only are
  /// taken to be slower by as much.
  void add_in_rhythm(std::int64_t batch, const BatchCost& cost);

  bool knows(std::int64_t batch) const { return known_.contains(batch); }
  bool reaches(std::int64_t batch) const {
    return !known_.empty() && known_.rbegin()->first >= batch;
  }

  /// By a line between those that are known; one smaller than all of them is filled up.
  BatchCost at(std::int64_t batch) const;

  /// The nearest known ones on both sides.
  std::optional<std::int64_t> known_below(std::int64_t batch) const;
  std::optional<std::int64_t> known_above(std::int64_t batch) const;

 private:
  std::map<std::int64_t, BatchCost> known_;
  std::set<std::int64_t> in_rhythm_;
};

InferenceSetting with_batch(InferenceSetting setting, std::int64_t batch);

/// The settings that were priced, in that order. Borrows everything.
class PricedSettings {
 public:
  PricedSettings(const InferenceTuning& tuning, const PriceInference& price,
                 const std::stop_token& stop)
      : tuning_(tuning), scenario_(tuning.study.scenario), price_(price), stop_(stop) {}

  std::vector<InferenceTrial>& trials() { return trials_; }
  std::size_t asked() const { return asked_; }  ///< settings that were asked for

  /// Null if there is none.
  InferenceTrial* find(const InferenceSetting& setting);
  bool has_failed(const InferenceSetting& setting);

  /// What batches of the setting cost, whatever its own batch is.
  BatchCosts& costs_of(const InferenceSetting& setting);

  /// Prices a setting that is asked for; also with a batch of one where batches need not be full.
  /// A price that cannot be had is a trial with a reason. Fails with `cancelled` alone.
  Status price(const InferenceSetting& setting);

  /// Measures a trial again, and single samples with it where its batches are not full, in the
  /// rhythm that the scenario has with it. Of several looks the middle one counts; what it was
  /// before stays if all of them fail.
  Status look_at(std::size_t number, int looks);

  Response respond(const InferenceSetting& setting, SimulationOptions options);
  void respond_all();

 private:
  enum class For : std::uint8_t { itself, others };

  bool forms_partial_batches() const;
  Status price(const InferenceSetting& setting, For what);
  Status measure_again(InferenceTrial& trial, const std::optional<Rhythm>& rhythm, int looks);

  const InferenceTuning& tuning_;
  const Scenario& scenario_;
  const PriceInference& price_;
  const std::stop_token& stop_;
  std::vector<InferenceTrial> trials_;
  std::size_t asked_ = 0;
  std::vector<std::pair<InferenceSetting, BatchCosts>> costs_;
};

}  // namespace fleetfit::tune
