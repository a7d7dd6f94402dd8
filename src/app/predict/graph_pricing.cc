#include "app/predict/graph_pricing.h"

#include <utility>

#include "app/devices/kernel_rules.h"
#include "app/predict/kernel_samples.h"

namespace fleetfit::app {

GraphPricing::GraphPricing(std::unique_ptr<predict::KernelPredictor> predictor,
                           cost::KernelRules rules, measure::Precision precision)
    : predictor_(std::move(predictor)), rules_(std::move(rules)), precision_(precision) {}

Result<GraphPricing> GraphPricing::open(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(auto predictor, predict::read_kernel_predictor(file));
  const auto& identity = predictor->identity();
  FLEETFIT_ASSIGN(const auto precision,
                  core::within(file.string(), measure::parse_precision(identity.precision)));
  FLEETFIT_ASSIGN(auto rules, core::within(file.string(), rules_named(identity.rules)));
  return GraphPricing(std::move(predictor), std::move(rules), precision);
}

Result<PredictedModel> GraphPricing::price(graph::Graph graph, std::string name) const {
  FLEETFIT_ASSIGN(const auto run, core::within(name, as_run(std::move(graph), precision_)));
  FLEETFIT_ASSIGN(const auto deduced, core::within(name, deduced_kernels(run, rules_)));
  FLEETFIT_ASSIGN(auto price, core::within(name, predictor_->price(deduced.features)));
  PredictedModel model{.model = std::move(name),
                       .latency_ms = price.latency_ms,
                       .interval90 = price.interval90,
                       .overhead_ms = price.overhead_ms,
                       .unpriced = std::move(price.unpriced)};
  for (std::size_t i = 0; i < deduced.kernels.size(); ++i) {
    model.kernels.push_back({.name = deduced.names[i],
                             .kind = deduced.kernels[i].kind,
                             .ms = price.kernels[i].ms,
                             .interval90 = price.kernels[i].interval90});
  }
  return model;
}

}  // namespace fleetfit::app
