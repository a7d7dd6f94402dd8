#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/predict/kernel_predictor.h"

namespace fleetfit::predict {

/// A kernel with its price.
struct PricedKernel {
  std::string name = {};  ///< the nodes in it, joined by "+"
  std::string kind = {};
  double ms = 0;
  core::Interval interval90 = {};
};

struct PredictedModel {
  std::string model = {};
  double latency_ms = 0;  ///< the kernels and the overhead
  core::Interval interval90 = {};
  double overhead_ms = 0;
  std::vector<PricedKernel> kernels = {};
  std::vector<Unpriced> unpriced = {};
};

/// A predictor at work on graphs: deduces the kernels that its device runs, and prices them.
class GraphPricing {
 public:
  /// Fails as `read_kernel_predictor` does, and with `invalid_input` on rules or a precision that
  /// are none.
  static Result<GraphPricing> open(const std::filesystem::path& file);

  const KernelPredictor& predictor() const { return *predictor_; }
  const Identity& identity() const { return predictor_->identity(); }
  const cost::KernelRules& rules() const { return rules_; }

  /// Of a network as its file has it, or as it was run; a float one is quantized if the device
  /// computes in int8. Errors name it. Fails with `invalid_input`, naming the predictor's file and
  /// the kernel, where numbers of the predictor give what is no time.
  Result<PredictedModel> price(graph::Graph graph, std::string name) const;

 private:
  GraphPricing(std::string file, std::unique_ptr<KernelPredictor> predictor,
               cost::KernelRules rules);

  std::string file_;
  std::unique_ptr<KernelPredictor> predictor_;
  cost::KernelRules rules_;
};

}  // namespace fleetfit::predict
