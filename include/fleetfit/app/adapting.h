#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/adapt/evaluator.h"
#include "fleetfit/adapt/pool.h"
#include "fleetfit/adapt/timers.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"

/// Use case: the best subnet of a bundle for this device, its data and a budget.
namespace fleetfit::app {

struct AdaptRequest {
  std::filesystem::path bundle = {};
  std::optional<std::filesystem::path> public_key = std::nullopt;  ///< that must have signed it
  std::string data = {};                                           ///< a data set
  double budget_ms = 0;
  std::string device = std::string(kLocalDevice);
  /// guided, evolution, annealing, or what the paper does: nearby-evolution, nearby-annealing.
  std::string strategy = "guided";
  std::string labels = "data";  ///< or "original"
  std::string tail = "median";  ///< what the budget is for: median, p95 or p99
  std::size_t samples = 500;    ///< images to search with
  std::size_t choice = 2000;    ///< most further images to choose the best of the finalists by
  std::size_t test = 4000;      ///< most images to take the accuracy on
  std::string reuse_memory = "256M";      ///< most for features that subnets share
  std::string program_memory = "512M";    ///< about the most for branches that are ready to run
  std::filesystem::path table = {};       ///< a latency table to use instead of profiling
  std::filesystem::path save_table = {};  ///< where to write the table; may be empty
  std::filesystem::path proxy = {};       ///< another device's table, to be adapted to this device
  std::filesystem::path pool = {};        ///< where to write the pool
  std::string compare = {};               ///< a subnet to tell the same of; may be empty
  adapt::TimingOptions timing = {};       ///< its quantile is that of `tail`
  std::uint64_t seed = 1;
  int threads = 1;  ///< for evaluating
};

struct AdaptedSubnet {
  std::string subnet = {};
  double latency_ms = 0;
  double accuracy = 0;
};
core::Fields fields_of(const AdaptedSubnet*);

struct AdaptReport {
  std::optional<AdaptedSubnet> best = std::nullopt;  ///< none: the budget cannot be kept
  AdaptedSubnet fastest = {};  ///< of all; its accuracy is known if a search was made
  std::string device = {};
  std::string strategy = {};
  double budget_ms = 0;
  std::size_t evaluated = 0;  ///< subnets by the search
  double elapsed_s = 0;       ///< of the search itself
  double profile_s = 0;
  double total_s = 0;
  adapt::ReuseReport reuse = {};
  std::vector<adapt::PoolEntry> pool = {};
  std::optional<AdaptedSubnet> compared = std::nullopt;  ///< the one that was asked for
  double table_error_percent = 0;
  std::string table_from = {};  ///< "profile", "file" or "proxy"
  std::size_t searched_images = 0;
  std::size_t choice_images = 0;
  std::size_t test_images = 0;
  std::string labels = {};
  std::int64_t peak_memory_bytes = 0;
  std::int64_t memory_limit_bytes = 0;  ///< for shared features and branches that are ready
  std::int64_t bundle_bytes = 0;
  std::int64_t model_bytes = 0;  ///< of the file that was made elastic
  bool stopped = false;          ///< before the search had come to its end
};
core::Fields fields_of(const AdaptReport*);

/// Profiles the device, searches on images of the data's validation part, chooses among the
/// finalists by their own times and by further images, and takes accuracies on images of the test
/// part. Writes the pool, if there is a subnet within the budget. A budget under the fastest subnet
/// is no failure: then there is no best.
///
/// Fails with `invalid_input` on a bundle that is damaged or not signed as asked for, on data that
/// does not fit the model, and on options that make no sense.
Result<AdaptReport> adapt_bundle(Workplace& workplace, const AdaptRequest& request,
                                 core::Progress& progress, const std::stop_token& stop);

}  // namespace fleetfit::app
