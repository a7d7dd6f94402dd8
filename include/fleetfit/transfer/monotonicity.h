#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/core/thread_pool.h"

/// How far devices agree on which designs are slow. Where two of them agree, the best designs of
/// one are the best of the other, whatever the milliseconds are.
namespace fleetfit::transfer {

/// Latencies of the same designs on several devices; NaN where a design was not measured. Borrows
/// everything.
struct DeviceColumns {
  std::span<const std::string> names = {};
  std::span<const std::vector<double>> values = {};  ///< values[device][design], all of one length
};

/// Rank correlation of each device with each other.
struct CorrelationMatrix {
  std::vector<std::string> devices = {};
  std::vector<std::vector<double>> srcc = {};  ///< 1 on the diagonal
  std::vector<std::vector<std::size_t>> designs =
      {};  ///< measured on both: what the correlation was computed from
};

/// Spearman's rank correlation of all pairs; equal latencies share their mean rank. A design counts
/// for those pairs that both measured it. Fails with `invalid_input`, naming the devices, if all
/// latencies of one are equal, or if two have fewer than two designs in common or no different
/// latencies among them.
Result<CorrelationMatrix> correlation_matrix(const DeviceColumns& columns);

/// A rank correlation estimated from samples.
struct SrccEstimate {
  double srcc = 0;
  core::Interval ci95 = {};  ///< holds the one of all designs in 19 of 20 cases
  std::size_t samples = 0;
};

/// From latencies of the same designs on two devices, by Fisher's transform with the variance of
/// Bonett and Wright. Fails as `core::spearman` does, and on fewer than 4 samples.
Result<SrccEstimate> estimate_srcc(std::span<const double> a, std::span<const double> b);

/// Where the correlation of all designs lies, in 19 of 20 cases, if that of so many is `srcc`;
/// needs 4 samples.
core::Interval srcc_interval(double srcc, std::size_t samples);

enum class Verdict : std::uint8_t {
  holds,     ///< the interval lies at or above the threshold
  fails,     ///< the interval lies below the threshold
  undecided  ///< more samples are needed to tell
};
Verdict compare(const SrccEstimate& estimate, double threshold);

/// How many samples are expected to tell such a correlation from a threshold; nothing if more than
/// 100,000.
std::optional<std::size_t> samples_to_decide(double srcc, double threshold);

struct SpreadOptions {
  std::size_t samples = 30;
  std::size_t trials = 1000;
  std::uint64_t seed = 1;
};

/// What random samples of a table tell of the correlation of two columns.
struct SrccSpread {
  double mean = 0;
  double stddev = 0;
  core::Interval ci95 = {};   ///< holds 95 % of the trials
  std::size_t undefined = 0;  ///< trials whose samples had no order on one device; left out
};

/// The columns hold no NaN. Trial i depends on seed and i alone. Fails with `invalid_input` if
/// there are fewer designs than samples, fewer than 2 of either, or if no trial had an order.
Result<SrccSpread> srcc_spread(std::span<const double> a, std::span<const double> b,
                               const SpreadOptions& options, core::ThreadPool& pool);

/// The least number of samples of which 95 % of the trials fall on the right side of the threshold,
/// from a series that grows by about a quarter; nothing if there is none.
/// `options.samples` is not looked at. Fails as `srcc_spread` does.
Result<std::optional<std::size_t>> enough_samples(std::span<const double> a,
                                                  std::span<const double> b, double threshold,
                                                  const SpreadOptions& options,
                                                  core::ThreadPool& pool);

}  // namespace fleetfit::transfer
