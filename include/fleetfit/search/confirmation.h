#pragma once

#include <cstddef>
#include <optional>
#include <span>

/// Which design to measure next, when a few measurements on a device decide which one it gets.
namespace fleetfit::search {

/// A design whose costs on the device are expected, not known.
struct Prospect {
  double accuracy = 0;
  double within = 0;  ///< probability that it keeps all budgets; 0 if it was measured
};

struct ConfirmOptions {
  /// Accuracy of the best design that was measured and keeps all budgets; nothing if there is none.
  std::optional<double> sure = std::nullopt;
  /// An expected gain of accuracy up to which a measurement is not worth its while.
  double least_gain = 0;
};

/// The place of the prospect that promises the largest gain of accuracy over what is sure: gain
/// times probability. As long as nothing is sure, that is a safe design; the more is sure, the
/// bolder. Nothing if none promises more than the least gain.
std::optional<std::size_t> next_to_confirm(std::span<const Prospect> prospects,
                                           const ConfirmOptions& options);

/// The probability that a cost that was predicted keeps a budget.
struct ExpectedCost {
  double value = 0;
  double deviation = 0;  ///< standard deviation of a measurement from it; 0: it is sure
};
double probability_within(const ExpectedCost& cost, double budget);

/// How much wider the deviations of a device are than predicted: a prediction that a measurement
/// refutes makes all others less sure.
class Doubt {
 public:
  void see(const ExpectedCost& expected, double measured);

  /// From 1 for what was always right.
  double factor() const;

 private:
  double squares_ = 0;
  double count_ = 0;
};

}  // namespace fleetfit::search
