#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/names.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/predict/kernel_predictor.h"
#include "fleetfit/predict/linear_model.h"
#include "fleetfit/predict/regressor.h"
#include "fleetfit/predict/samples.h"
#include "fleetfit/predict/tree_model.h"

/// A model for each kind of kernel, trained with profiles of networks on one device.
namespace fleetfit::predict {

enum class Method {
  automatic,      ///< for each kind what does best in cross-validation
  lasso,          ///< `fit_lasso`
  random_forest,  ///< `fit_forest`
  boosted_trees,  ///< `fit_boosted_trees`
  mlp,            ///< `TrainOptions::fit_mlp`
  table,          ///< `fit_table`
};

/// "auto", "lasso", "rf", "gbdt", "mlp", "table".
core::Names names_of(Method);
using core::to_string;

/// Where a library has different code for different kernels of one kind (other window sizes, other
/// activations), each gets a model of its own: its kernels are those that meet all conditions.
struct Condition {
  std::size_t feature = 0;
  double threshold = 0;
  bool at_least = false;  ///< the feature is at least the threshold, or below it

  bool holds(std::span<const double> features) const {
    return (features[feature] >= threshold) == at_least;
  }
};

/// What is known of one kind of kernel, or of a part of it.
struct KindModel {
  std::string kind = {};
  std::vector<Condition> when = {};
  std::string method = {};    ///< that was chosen
  std::string settings = {};  ///< of the method, for people
  std::unique_ptr<Regressor> model = {};
  /// How prices grow beyond the range of what was measured.
  LinearModel guide{0, {}};
  std::vector<double> low = {};  ///< the range of each feature
  std::vector<double> high = {};
  double least_ms = 0;  ///< of all that were measured; no price is below half of it
  int samples = 0;
  int networks = 0;     ///< that have a kernel of this kind
  double mape = 0;      ///< in percent, of kernels of networks that the model did not see
  double share = 0;     ///< of all measured time
  double spread90 = 0;  ///< nine of ten such prices are off by at most exp(this)
  /// How much more the logarithm of a price is off for each unit of distance from what was
  /// measured.
  double growth = 0;
  std::vector<double> importance = {};  ///< of each feature
  struct Known {
    std::vector<double> features;
    double ms;
  };
  std::vector<Known> known = {};  ///< some kernels that were measured, far from each other
};
core::Fields fields_of(const KindModel*);

/// What networks take beside their kernels.
struct Overhead {
  double network_ms = 0;
  double kernel_ms = 0;     ///< for each kernel
  double full_from_ms = 0;  ///< if the kernels take less than this, it is less in proportion

  double of(std::size_t kernels, double kernels_took_ms) const;
};
core::Fields fields_of(const Overhead*);

/// Networks that are over soon find more of what they need in caches, where others drive it out in
/// the meantime: their kernels are faster than the same ones of long networks.
struct ShortNetworks {
  double below_ms = 0;  ///< latency below which a network is short; 0: none is
  double least_ms = 0;  ///< the shortest that was measured: shorter ones gain as much as it does
  double power = 0;     ///< half of the latency makes all prices 2^power times less

  /// What prices that add up to `latency_ms` have to be multiplied by.
  double factor(double latency_ms) const;
};
core::Fields fields_of(const ShortNetworks*);

class OperatorPredictor final : public KernelPredictor {
 public:
  struct Parts {
    Identity identity = {};
    Overhead overhead = {};
    ShortNetworks short_networks = {};
    std::vector<KindModel> kinds = {};  ///< sorted by kind
    /// Takes generic features alone: for kinds without a model.
    LinearModel generic{0, {}};
    double generic_spread90 = 1;  ///< of its prices for kinds that it did not see
    double network_score90 = 1;  ///< nine of ten networks are off by at most this many difficulties
    double network_mape = 0;     ///< in percent, of networks that no model saw
  };

  /// The parts fit together.
  explicit OperatorPredictor(Parts parts) : parts_(std::move(parts)) {}

  const Identity& identity() const override { return parts_.identity; }
  Result<NetworkPrice> price(std::span<const cost::KernelFeatures> kernels) const override;
  nlohmann::json to_json() const override;

  static Result<std::unique_ptr<KernelPredictor>> from_json(const core::JsonView& json,
                                                            Identity identity);

  std::span<const KindModel> kinds() const { return parts_.kinds; }
  const Overhead& overhead() const { return parts_.overhead; }
  const ShortNetworks& short_networks() const { return parts_.short_networks; }
  double network_mape() const { return parts_.network_mape; }

  /// The model of a kernel; null if there is none.
  const KindModel* find(std::string_view kind, std::span<const double> features) const;

 private:
  Parts parts_;
};

core::Fields fields_of(const OperatorPredictor::Parts*);

struct TrainOptions {
  Method method = Method::automatic;
  Identity identity = {};  ///< method, networks and versions are filled in
  std::uint64_t seed = 0;
  int folds = 5;               ///< of cross-validation; kernels of one network stay together
  FitRegressors fit_mlp = {};  ///< where dense networks can be trained
  ForestOptions forest = {};
  BoostOptions boost = {};
};

/// Fails as `check_samples` does; with `invalid_input` if there are fewer than 3 networks; with
/// `unsupported` if the method is `mlp` and nothing can fit one.
/// Times of kernels are scaled so that with the overhead they add up to the network's latency:
/// profiling costs time, too. The same samples and seed give the same predictor whatever the
/// number of threads.
Result<OperatorPredictor> train_operator_predictor(std::span<const NetworkSample> samples,
                                                   const TrainOptions& options,
                                                   core::ThreadPool& pool);

}  // namespace fleetfit::predict
