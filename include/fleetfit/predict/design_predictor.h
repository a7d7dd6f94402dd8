#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/statistics.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/predict/graph_network.h"
#include "fleetfit/predict/kernel_predictor.h"
#include "fleetfit/predict/network_predictor.h"
#include "fleetfit/space/source.h"
#include "fleetfit/space/space.h"

/// Designs of a space priced as wholes, for devices of which only the times of whole networks are
/// known.
namespace fleetfit::predict {

/// Gives the milliseconds of designs. Immutable; safe to use from many threads.
class DesignPredictor : public space::Source {
 public:
  virtual const Identity& identity() const = 0;
  virtual const space::Space& space() const = 0;
  virtual std::string_view reads() const = 0;  ///< what it sees of a design: an encoding, "graph"
  virtual std::string_view settings() const = 0;  ///< of the model, for people
  virtual double mape() const = 0;                ///< in percent, of designs that it did not see

  /// Around a price: holds nine of ten designs of the kind that it was trained with.
  virtual core::Interval interval90(double ms) const = 0;

  /// docs/formats/predictor.md, types "network" and "network-graph".
  virtual nlohmann::json to_json() const = 0;
};

struct DesignTrainOptions {
  DesignMethod method = DesignMethod::automatic;  ///< automatic: linear or trees
  std::string encoding = "auto";                  ///< auto: the one with the least error
  Identity identity = {};                         ///< method, networks and versions are filled in
  std::uint64_t seed = 0;
  // Of the graph network's training.
  std::optional<double> budget_s = {};  ///< none: as long as it takes
  std::stop_token stop = {};            ///< the best network so far is then taken
};

/// Learns from designs and their times. Fails with `invalid_input`, naming the design, if a time is
/// not positive, if there are fewer than 5 designs (20 for a graph network) and if the space has no
/// such encoding; with `not_found` if a graph network is asked for and fleetfit-train is not there.
Result<std::unique_ptr<const DesignPredictor>> train_design_predictor(
    const space::Space& space, space::DesignBatch designs, std::span<const double> latency_ms,
    const DesignTrainOptions& options, core::ThreadPool& pool);

/// Fails, naming file and place, on a damaged file, on one of another type, and on a space or an
/// encoding that this program does not have.
Result<std::unique_ptr<const DesignPredictor>> read_design_predictor(
    const std::filesystem::path& file);
Result<std::unique_ptr<const DesignPredictor>> design_predictor_from_json(
    const core::JsonView& json);

/// The names of a node's numbers in `kernel_graph`: one for each kind of kernel, then the features
/// that every kind has. A graph network that was trained with others must not be used.
std::vector<std::string> kernel_graph_features();

/// A network as its kernels and the data flow between them, for a graph network. Fails as
/// `cost::features_of` does.
Result<NodeGraph> kernel_graph(const graph::Graph& graph, const cost::KernelPlan& plan);

}  // namespace fleetfit::predict
