#include "fleetfit/predict/graph_pricing.h"

#include <fmt/format.h>

#include <utility>

#include "fleetfit/core/plausible.h"
#include "fleetfit/cost/features.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::predict {
namespace {

constexpr std::string_view kInt8 = "int8";

Status check_precision(const std::string& precision) {
  if (precision == "fp32" || precision == kInt8) return {};
  return refuse(fmt::format("precision: \"{}\" is neither fp32 nor int8", precision));
}

bool is_time(double ms, const core::Interval& interval90) {
  return core::is_time_ms(ms) && core::is_within_reason(interval90.low) &&
         core::is_within_reason(interval90.high);
}

tl::unexpected<Error> no_time(std::string_view what, double ms, const core::Interval& interval90) {
  return refuse(
      fmt::format("{}: the predictor gives it {:g} ms (from {:g} to {:g}), which is no time", what,
                  ms, interval90.low, interval90.high));
}

Status check_price(const NetworkPrice& price, const cost::DeducedKernels& deduced) {
  for (std::size_t i = 0; i < price.kernels.size(); ++i) {
    const auto& [ms, interval90] = price.kernels[i];
    if (!is_time(ms, interval90))
      return no_time(fmt::format("kernel {} ({})", i, deduced.kernels[i].kind), ms, interval90);
  }
  if (is_time(price.latency_ms, price.interval90)) return {};
  return no_time("the network", price.latency_ms, price.interval90);
}

}  // namespace

GraphPricing::GraphPricing(std::string file, std::unique_ptr<KernelPredictor> predictor,
                           cost::KernelRules rules)
    : file_(std::move(file)), predictor_(std::move(predictor)), rules_(std::move(rules)) {}

Result<GraphPricing> GraphPricing::open(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(auto predictor, read_kernel_predictor(file));
  const auto& identity = predictor->identity();
  FLEETFIT_TRY(core::within(file.string(), check_precision(identity.precision)));
  FLEETFIT_ASSIGN(auto rules,
                  core::within(file.string(), cost::KernelRules::named(identity.rules)));
  return GraphPricing(file.string(), std::move(predictor), std::move(rules));
}

Result<PredictedModel> GraphPricing::price(graph::Graph graph, std::string name) const {
  if (identity().precision == kInt8) {
    FLEETFIT_ASSIGN(graph, core::within(name, graph::quantized_for_costs(std::move(graph))));
  }
  FLEETFIT_ASSIGN(const auto deduced, core::within(name, cost::deduced_kernels(graph, rules_)));
  const auto checked = [&](NetworkPrice price) -> Result<NetworkPrice> {
    FLEETFIT_TRY(check_price(price, deduced));
    return price;
  };
  FLEETFIT_ASSIGN(
      auto price,
      core::within(name,
                   core::within(file_, predictor_->price(deduced.features).and_then(checked))));
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
