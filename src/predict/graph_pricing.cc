#include "fleetfit/predict/graph_pricing.h"

#include <fmt/format.h>

#include <utility>

#include "fleetfit/cost/features.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::predict {
namespace {

constexpr std::string_view kInt8 = "int8";

Status check_precision(const std::string& precision) {
  if (precision == "fp32" || precision == kInt8) return {};
  return refuse(fmt::format("precision: \"{}\" is neither fp32 nor int8", precision));
}

}  // namespace

GraphPricing::GraphPricing(std::unique_ptr<KernelPredictor> predictor, cost::KernelRules rules)
    : predictor_(std::move(predictor)), rules_(std::move(rules)) {}

Result<GraphPricing> GraphPricing::open(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(auto predictor, read_kernel_predictor(file));
  const auto& identity = predictor->identity();
  FLEETFIT_TRY(core::within(file.string(), check_precision(identity.precision)));
  FLEETFIT_ASSIGN(auto rules,
                  core::within(file.string(), cost::KernelRules::named(identity.rules)));
  return GraphPricing(std::move(predictor), std::move(rules));
}

Result<PredictedModel> GraphPricing::price(graph::Graph graph, std::string name) const {
  if (identity().precision == kInt8) {
    FLEETFIT_ASSIGN(graph, core::within(name, graph::quantized_for_costs(std::move(graph))));
  }
  FLEETFIT_ASSIGN(const auto deduced, core::within(name, cost::deduced_kernels(graph, rules_)));
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

}  // namespace fleetfit::predict
