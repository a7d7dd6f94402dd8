#include "app/graph_pricing.h"

#include <utility>

#include "app/kernel_rules.h"
#include "app/kernel_samples.h"

namespace fleetfit::app {

GraphPricing::GraphPricing(std::unique_ptr<predict::KernelPredictor> predictor,
                           cost::KernelRules rules, measure::Precision precision)
    : predictor_(std::move(predictor)), rules_(std::move(rules)), precision_(precision) {}

Result<GraphPricing> GraphPricing::open(const std::filesystem::path& file) {
  auto predictor = predict::read_kernel_predictor(file);
  if (!predictor) return tl::unexpected(std::move(predictor.error()));
  const auto& identity = (*predictor)->identity();
  const auto precision = measure::parse_precision(identity.precision);
  if (!precision) return core::within(file.string(), precision.error());
  auto rules = rules_named(identity.rules);
  if (!rules) return core::within(file.string(), rules.error());
  return GraphPricing(*std::move(predictor), *std::move(rules), *precision);
}

Result<PredictedModel> GraphPricing::price(graph::Graph graph, std::string name) const {
  const auto run = as_run(std::move(graph), precision_);
  if (!run) return core::within(name, run.error());
  const auto deduced = deduced_kernels(*run, rules_);
  if (!deduced) return core::within(name, deduced.error());
  auto price = predictor_->price(deduced->features);
  if (!price) return core::within(name, price.error());
  PredictedModel model{.model = std::move(name),
                       .latency_ms = price->latency_ms,
                       .interval90 = price->interval90,
                       .overhead_ms = price->overhead_ms,
                       .unpriced = std::move(price->unpriced)};
  for (std::size_t i = 0; i < deduced->kernels.size(); ++i) {
    model.kernels.push_back({.name = deduced->names[i],
                             .kind = deduced->kernels[i].kind,
                             .ms = price->kernels[i].ms,
                             .interval90 = price->kernels[i].interval90});
  }
  return model;
}

}  // namespace fleetfit::app
