#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/source.h"
#include "fleetfit/transfer/linear_proxy.h"

namespace fleetfit::core {
struct Fields;
}

/// From a known device to a new one by a few measurements there.
namespace fleetfit::transfer {

/// Designs with their latency on the target. Borrows both.
struct Measured {
  space::DesignBatch designs = {};
  std::span<const double> latency_ms = {};
};

/// Something that costs another multiple of its price on the proxy than all else does.
struct OperatorChange {
  std::string name = {};                  ///< "edge 0>1 conv3x3", "all conv3x3", "edge 0>1"
  std::vector<std::size_t> columns = {};  ///< of "one-hot"
  bool live_only = false;                 ///< only where there is a way to the output
  double change_ms = 0;                   ///< of the column that changes most, for each use
};
core::Fields fields_of(const OperatorChange*);

struct AdaptOptions {
  int validation = 20;  ///< measurements that are set aside at a time to choose the penalty
  int lambdas = 40;     ///< points of the penalty's path
};

/// How an adapted proxy came about; all of it is for people.
struct AdaptReport {
  std::string proxy = {};
  std::string target = {};
  std::size_t measurements = 0;
  double lambda = 0;         ///< weight of the penalty on changes
  double held_out_srcc = 0;  ///< rank correlation on measurements that were set aside
  double proxy_srcc = 0;     ///< rank correlation of the unchanged proxy on all measurements
  bool keeps_proxy = false;  ///< the measurements do not speak for any change
  std::vector<OperatorChange> changes = {};  ///< the largest first
};
core::Fields fields_of(const AdaptReport*);

/// A proxy device's latency model, adapted to another device by a few measurements there. Keeps
/// the order of designs on the target, not their exact milliseconds. Immutable; safe to use from
/// many threads; the space must outlive it.
class AdaptedProxy {
 public:
  struct Parts {
    const space::Space* space = nullptr;
    double scale = 1;
    OperatorPrices prices = {};  ///< beside scale x what the proxy says
    /// What the proxy says of every design in the order of `Space::next`, if that is known. Else
    /// its prices are part of `prices`, and what it says counts as 0.
    std::vector<double> proxy_ms = {};
    AdaptReport report = {};
  };

  /// Fails with `invalid_input`, naming the part, if numbers are missing or not finite.
  static Result<AdaptedProxy> make(Parts parts);

  /// Latency in the target's unit, up to a monotone distortion.
  void predict_ms(space::DesignBatch designs, std::span<double> out) const;

  /// Common slow-down of all operators on the target.
  double scale() const { return parts_.scale; }

  /// Operators whose slow-down differs from the common one.
  std::span<const OperatorChange> changed_operators() const { return parts_.report.changes; }

  const space::Space& space() const { return *parts_.space; }
  const AdaptReport& report() const { return parts_.report; }
  const Parts& parts() const { return parts_; }

 private:
  explicit AdaptedProxy(Parts parts);

  Parts parts_;
  OperatorPricer pricer_;
  std::optional<space::DesignIndex> all_designs_;  // of a small space
  std::vector<double> all_ms_;                     // its prices, worked out once
};

core::Fields fields_of(const AdaptedProxy::Parts*);

/// Fits the proxy to what was measured on the target: latency = constant + scale x proxy + changes,
/// with few changes (equation (3) of "One Proxy Device Is Enough"). What may change are single
/// operators, all operators of a kind and all choices of a place, with and without dead paths; the
/// penalty and which of them are looked at are chosen by measurements that are set aside. Keeps the
/// proxy as it is if these do not speak for changes. Fails with `invalid_input` if there are no
/// more measurements than `options.validation`, if one is not positive, or if all latencies are
/// equal.
Result<AdaptedProxy> adapt(const LinearProxy& proxy, const Measured& measured,
                           const AdaptOptions& options = {});

/// The adapted proxy for searches.
std::unique_ptr<const space::Source> adapted_source(AdaptedProxy adapted);

/// docs/formats/adapted.md describes the file.
Status write_adapted(const AdaptedProxy& adapted, const std::filesystem::path& path);

/// Fails with `invalid_input`, naming file and field, on a file that is damaged, of a newer
/// version, or made for another space than `space` or another version of it.
Result<AdaptedProxy> load_adapted(const std::filesystem::path& path, const space::Space& space);
Result<AdaptedProxy> adapted_from_json(const core::JsonView& json, const space::Space& space);

}  // namespace fleetfit::transfer
