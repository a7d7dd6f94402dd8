#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/predict/graph_network.h"
#include "fleetfit/predict/network_parts.h"
#include "train/fit.h"

/// What is done with libtorch, but without its types: a header of it costs seconds to compile.
namespace fleetfit::train {

/// To be called once, before the first fit. Each fit uses one thread, so that sums are always taken
/// in the same order; several run side by side.
void use_one_thread_per_fit();

/// The loss of a sample is (number x slope + offset)^2, which says percentage errors of plain and
/// of logarithmic outputs alike.
struct Targets {
  std::vector<float> slope;
  std::vector<float> offset;
  std::vector<double> ms;
};

/// How a network's number is to be read as a time, given the times of training.
predict::OutputScaling fit_output(std::span<const double> ms, predict::Transform transform);

/// What the loss is made of.
Targets make_targets(std::vector<double> ms, const predict::OutputScaling& scaling);

/// Mean and deviation of each column, of rows one after the other.
predict::InputScaling fit_inputs(std::span<const double> rows, std::size_t columns,
                                 predict::Transform transform);

struct DenseSamples {
  std::vector<float> rows;  ///< scaled, row by row
  Targets targets;
};

struct DenseFitData {
  std::size_t features = 0;
  DenseSamples training;
  DenseSamples validation;
  predict::OutputScaling output;
};

struct DenseFitOptions {
  int layers = 1;  ///< hidden ones
  int width = 64;
  double decay = 0;  ///< of weights
};

class DenseFit : public Fit {
 public:
  /// What the network gives for scaled rows, as it is now.
  virtual std::vector<float> outputs(std::span<const float> rows) = 0;

  /// Those that were kept.
  virtual std::vector<predict::DenseLayer> layers() const = 0;
};

std::unique_ptr<DenseFit> make_dense_fit(DenseFitData data, const DenseFitOptions& options,
                                         const core::Random& random);

/// Graphs whose nodes' numbers are scaled.
struct GraphSamples {
  struct Graph {
    std::vector<float> nodes;
    std::vector<predict::GraphEdge> edges;
  };
  std::vector<Graph> graphs;
  Targets targets;
};

struct GraphFitData {
  std::size_t features = 0;
  GraphSamples training;
  GraphSamples validation;
  double sum_scale = 1;
  predict::OutputScaling output;
};

struct GraphFitOptions {
  int layers = 3;  ///< of messages
  int width = 64;
  double decay = 0;  ///< of weights
  predict::ReadoutOf readout_of = predict::ReadoutOf::graph;
};

class GraphFit : public Fit {
 public:
  /// What the network gives for graphs, as it is now.
  virtual std::vector<float> outputs(std::span<const GraphSamples::Graph> graphs) = 0;

  /// Those that were kept.
  virtual std::vector<predict::DenseLayer> layers() const = 0;
  virtual std::vector<predict::DenseLayer> readout() const = 0;
};

std::unique_ptr<GraphFit> make_graph_fit(GraphFitData data, const GraphFitOptions& options,
                                         const core::Random& random);

}  // namespace fleetfit::train
