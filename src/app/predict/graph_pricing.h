#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fleetfit/app/predicting.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/predict/kernel_predictor.h"

namespace fleetfit::app {

/// A predictor at work on graphs: deduces the kernels that its device runs, and prices them.
class GraphPricing {
 public:
  /// Fails as `predict::read_kernel_predictor` does.
  static Result<GraphPricing> open(const std::filesystem::path& file);

  const predict::KernelPredictor& predictor() const { return *predictor_; }
  const predict::Identity& identity() const { return predictor_->identity(); }
  const cost::KernelRules& rules() const { return rules_; }

  /// Of a network as its file has it, or as it was run. Errors name it.
  Result<PredictedModel> price(graph::Graph graph, std::string name) const;

 private:
  GraphPricing(std::unique_ptr<predict::KernelPredictor> predictor, cost::KernelRules rules,
               measure::Precision precision);

  std::unique_ptr<predict::KernelPredictor> predictor_;
  cost::KernelRules rules_;
  measure::Precision precision_;
};

}  // namespace fleetfit::app
