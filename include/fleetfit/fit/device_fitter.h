#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/fit/report.h"
#include "fleetfit/search/confirmation.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/space/space.h"
#include "fleetfit/transfer/few_shot.h"

/// One device of a fleet: a few measurements to learn, then a few that confirm candidates.
namespace fleetfit::fit {

/// What came of measuring a design.
struct Probe {
  std::vector<double> costs = {};  ///< in the order of the device's budgets; empty: none
  std::string problem = {};        ///< why there are none
};

/// Where designs are measured: a table that is looked up in, a device, a runtime. What it has
/// measured is kept in the store.
class Prober {
 public:
  Prober() = default;
  virtual ~Prober() = default;
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  /// In the order of the designs. What cannot be measured is a probe with a problem.
  virtual Result<std::vector<Probe>> measure(space::DesignBatch designs) = 0;

  /// Whether what is missing has to be measured by somebody else.
  virtual bool waits_for_others() const { return false; }
};

/// Designs that a device may get, with their accuracies. Borrows both.
struct Prospects {
  space::DesignBatch designs = {};
  std::span<const double> accuracy = {};  ///< NaN: unknown, so that it is not looked at
};

/// What the fitter works with. Borrows everything.
struct FitterParts {
  const space::Space& space;
  Prober& prober;
  /// For each budget, what is known of that cost on other devices.
  std::vector<const transfer::KnownDevices*> known = {};
};

/// Learns and confirms. A device whose prober waits, or whose measurements fail, ends in that state
/// and does nothing more. Belongs to one thread.
class DeviceFitter {
 public:
  /// `device` has its name and budgets; all else is found out.
  DeviceFitter(FitterParts parts, FittedDevice device);

  /// Measures the design that the device has now, and makes shares of its costs the limits.
  Status measure_original(space::Design design, double accuracy);

  /// Takes designs whose costs are known; `measure` finds them there.
  Status take(space::DesignBatch designs);

  /// Measures `count` of the candidates, those from which most is learned, less what was measured
  /// before.
  Status learn(space::DesignBatch candidates, std::size_t count);

  struct ConfirmPlan {
    std::size_t most = 4;
    double least_gain = 0;  ///< of accuracy; less is not worth a measurement
  };
  /// Measures candidates until none promises more.
  Status confirm(const Prospects& prospects, const ConfirmPlan& plan);

  /// Measures one more design, as a candidate.
  Status confirm_one(space::Design design, double accuracy);

  /// Best or nearest, what else the device could run, and what would be better.
  Status conclude(const Prospects& prospects);

  /// What designs are expected to cost, row by row in the order of the budgets.
  Result<std::vector<ExpectedRange>> expect(space::DesignBatch designs) const;

  /// The probability that designs keep all budgets; 1 or 0 where that was measured.
  Result<std::vector<double>> within(space::DesignBatch designs) const;

  /// What was learned of the cost with that budget.
  Result<std::unique_ptr<const transfer::FewShotModel>> model(std::size_t budget) const;

  /// Ends it as failed.
  void give_up(std::string reason);

  /// What was found so far.
  const FittedDevice& device() const { return device_; }

  bool is_open() const { return is_open_; }

 private:
  struct Seen {
    std::vector<double> costs;  // empty: it failed
    double accuracy;
  };

  Status measure(space::DesignBatch designs, std::span<const double> accuracy, bool confirms);
  Status note(space::Design design, double accuracy, Probe probe, FitPoint point);
  void wait_for(space::DesignBatch designs);
  /// What everything costs that was measured, as small networks take the same memory: there is
  /// nothing to learn then.
  std::optional<double> same_cost(std::size_t budget) const;
  double chance(std::span<const ExpectedRange> expected) const;
  bool keeps_budgets(std::span<const double> costs) const;
  std::optional<double> sure() const;
  double excess(std::span<const double> costs) const;
  Result<std::optional<std::size_t>> nearest_to_budgets(const Prospects& prospects) const;
  void fill_in(const Prospects& prospects);
  FitPoint point_of(space::Design design, double accuracy,
                    std::span<const ExpectedRange> expected) const;

  FitterParts parts_;
  FittedDevice device_;
  space::DesignIndex index_;  // of what was measured
  std::vector<Seen> seen_;    // in the order of the index
  std::vector<search::Doubt> doubts_;
  bool is_open_ = true;
};

}  // namespace fleetfit::fit
