#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/app/learning.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/learned/device_features.h"
#include "fleetfit/learned/lessons.h"
#include "fleetfit/learned/samples.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/space/table.h"
#include "fleetfit/transfer/few_shot.h"

namespace fleetfit::app {

/// Compares ways to choose designs for devices that a learned model does not know. Borrows what it
/// is made of. Belongs to one thread.
class LearningStudy {
 public:
  /// What is known of all designs of the table, and of one device truly.
  struct Truth {
    const learned::Samples& samples;
    std::size_t device = 0;
    std::span<const double> latency;

    bool is_known(std::size_t row) const {
      return !std::isnan(latency[row]) && !std::isnan(samples.accuracy[row]);
    }
    /// Designs whose input has no way to the output are no networks.
    bool works(std::size_t row) const {
      return samples.space->live_slots(std::as_const(samples.designs)[row]).any();
    }
  };

  /// A way with its choices.
  struct Way {
    std::string name;
    std::function<Result<std::size_t>(double budget)> choose;  // a row of the table
  };

  LearningStudy(const LearnEvalRequest& request, const learned::Samples& samples,
                const space::DesignTable& table, core::ThreadPool& pool, const core::Clock& clock)
      : request_(request),
        samples_(samples),
        table_(table),
        pool_(pool),
        clock_(clock),
        index_(*samples.space) {
    for (std::size_t i = 0; i < samples.designs.size(); ++i)
      index_.add(std::as_const(samples.designs)[i]);
  }

  /// A split whose model was trained without the devices.
  Status look_at(const learned::Model& model, std::span<const std::size_t> left_out,
                 std::size_t split, learned::KnownFeatures features);

  LearnEvalReport report() const;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);  // no row

  Status look_at_device(const learned::Model& model, const transfer::KnownDevices* known,
                        std::span<const std::size_t> references, std::size_t device,
                        std::size_t split);
  Way learned_way(const learned::DeviceJudge& judge);
  Way searched_way(const learned::DeviceJudge& judge);
  Way nearest_way(const Truth& truth, const learned::Model& model,
                  std::span<const std::size_t> references);
  Result<Way> few_shot_way(const Truth& truth, const transfer::KnownDevices& known,
                           LearnedDevice& device);
  std::optional<double> same_references(const Truth& truth,
                                        const transfer::KnownDevices& known) const;
  std::string advice() const;
  Result<Way> own_way(const Truth& truth);
  Status run(const Way& way, const Truth& truth);
  Status run(const Way& way, const Truth& truth, BudgetSpread spread);
  Result<std::size_t> row_of(space::Design design) const;
  /// The most accurate design of the table that takes at most this long by `latency`, with the true
  /// accuracies; the quickest if there is none.
  static std::size_t best_within(const Truth& truth, std::span<const double> latency,
                                 double budget);
  void judge_predictions(const Truth& truth, const learned::DeviceJudge& judge,
                         LearnedDevice& device);
  LearnWay summary(const std::string& way, BudgetSpread spread) const;

  const LearnEvalRequest& request_;
  const learned::Samples& samples_;
  const space::DesignTable& table_;
  core::ThreadPool& pool_;
  const core::Clock& clock_;
  space::DesignIndex index_;
  std::vector<LearnedDevice> devices_;
  std::vector<LearnOutcome> outcomes_;
  std::vector<std::string> ways_;                        // in the order in which they came
  std::map<std::string, std::vector<double>> times_us_;  // by way
  std::size_t unsure_ = 0;
  learned::KnownFeatures features_;  // of all devices, in the split that is looked at
};

}  // namespace fleetfit::app
