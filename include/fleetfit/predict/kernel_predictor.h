#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/cost/features.h"

namespace fleetfit::core {
struct Fields;
}

/// Networks priced kernel by kernel. Every number that comes from here is predicted.
namespace fleetfit::predict {

/// The networks that a predictor has seen, which can be no test of it.
struct TrainedOn {
  std::string space = {};                ///< "" if they were files
  std::uint64_t seed = 0;                ///< of the designs
  std::uint64_t first = 0;               ///< number of the first design
  std::uint64_t designs = 0;             ///< how many, one after the other
  std::vector<std::string> models = {};  ///< hashes of files

  bool operator==(const TrainedOn&) const = default;
};
core::Fields fields_of(const TrainedOn*);

/// What a predictor stands for, and where it comes from.
struct Identity {
  std::string device = {};       ///< its name
  std::string fingerprint = {};  ///< of device and runtime; "" for a device that exists on paper
  std::string runtime = {};      ///< with its version
  std::string precision = "fp32";
  /// Of the kernels that it prices: "engine:xnnpack"; "" for one kernel for each operator.
  std::string rules = {};
  std::string method = {};  ///< as the user asked for it
  int networks = 0;         ///< that it was trained with
  std::string date = {};    ///< of the training, ISO 8601
  std::string fleetfit_version = {};
  int feature_version = cost::kFeatureVersion;
  TrainedOn trained_on = {};

  bool operator==(const Identity&) const = default;
};
core::Fields fields_of(const Identity*);

struct KernelPrice {
  double ms = 0;  ///< positive
  core::Interval interval90 = {};
};

/// A kernel whose price is a guess, and what it was guessed from.
struct Unpriced {
  std::size_t kernel = 0;  ///< its place in the list that was priced
  std::string kind = {};
  std::string reason = {};   ///< "filters 2048 lies above the 640 that were measured"
  std::string nearest = {};  ///< the nearest kernel that was measured; "" if none was
  double nearest_ms = 0;     ///< its time
};

struct NetworkPrice {
  double latency_ms = 0;  ///< the sum of the kernels and the overhead
  core::Interval interval90 = {};
  double overhead_ms = 0;
  std::vector<KernelPrice> kernels = {};  ///< in the order of the kernels that were asked for
  std::vector<Unpriced> unpriced = {};    ///< priced as well as can be, and listed
};

/// Immutable; safe to use from many threads.
class KernelPredictor {
 public:
  virtual ~KernelPredictor() = default;

  virtual const Identity& identity() const = 0;

  /// The kernels of one network. Never prices one at zero. Fails with `invalid_input`, naming the
  /// kernel, if its features are not as many as its kind has, or one is not finite.
  virtual Result<NetworkPrice> price(std::span<const cost::KernelFeatures> kernels) const = 0;

  /// The document that `kernel_predictor_from_json` reads (docs/formats/predictor.md).
  virtual nlohmann::json to_json() const = 0;
};

/// Reads any predictor by its "type": "operators", "roofline", "accelerator". Checks everything, so
/// that a damaged file is refused with one line that names the place, and a version or a list of
/// features that this program does not know with its number.
Result<std::unique_ptr<KernelPredictor>> kernel_predictor_from_json(const core::JsonView& json);

/// Also fails as `core::read_json` does.
Result<std::unique_ptr<KernelPredictor>> read_kernel_predictor(const std::filesystem::path& file);

Status write_kernel_predictor(const std::filesystem::path& file, const KernelPredictor& predictor);

/// Where a network is to run.
struct Target {
  std::string device = {};       ///< its name, for the message
  std::string fingerprint = {};  ///< "": not checked
  std::string precision = {};    ///< "": not checked
};

/// Refuses a predictor that was made for another device or precision, with both names:
/// `invalid_input`. A device on paper fits every fingerprint.
Status check_fits(const Identity& identity, const Target& target);

}  // namespace fleetfit::predict
