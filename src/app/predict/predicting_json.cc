#include <nlohmann/json.hpp>

#include "fleetfit/app/predicting.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

Json ends(const core::Interval& interval) { return {interval.low, interval.high}; }

Json kernel_json(const predict::PricedKernel& kernel) {
  return {{"name", kernel.name},
          {"kernel", kernel.kind},
          {"latency_ms", kernel.ms},
          {"interval90", ends(kernel.interval90)}};
}

Json unpriced_json(const predict::PredictedModel& model, const predict::Unpriced& unpriced) {
  const auto& kernel = model.kernels[unpriced.kernel];
  return {{"name", kernel.name},         {"kernel", unpriced.kind},
          {"latency_ms", kernel.ms},     {"reason", unpriced.reason},
          {"nearest", unpriced.nearest}, {"nearest_ms", unpriced.nearest_ms}};
}

Json model_json(const Predictions& predictions, const predict::PredictedModel& model) {
  Json ops = Json::array();
  for (const auto& kernel : model.kernels) ops.push_back(kernel_json(kernel));
  Json unpriced = Json::array();
  for (const auto& one : model.unpriced) unpriced.push_back(unpriced_json(model, one));
  return {{"model", model.model},
          {"device", predictions.predictor.device},
          {"source", "predicted"},
          {"method", predictions.predictor.method},
          {"latency_ms", model.latency_ms},
          {"interval90", ends(model.interval90)},
          {"overhead_ms", model.overhead_ms},
          {"ops", std::move(ops)},
          {"unpriced", std::move(unpriced)}};
}

}  // namespace

Json to_json(const TrainedPredictor& trained) {
  const auto& identity = trained.identity;
  Json kinds = Json::array();
  for (const auto& kind : trained.kinds) {
    kinds.push_back({{"type", kind.kind},
                     {"method", kind.method},
                     {"settings", kind.settings},
                     {"samples", kind.samples},
                     {"mape", kind.mape},
                     {"share", kind.share}});
  }
  Json short_networks;  // none are faster than their kernels suggest
  if (const auto& law = trained.short_networks; law.power > 0) {
    short_networks = {{"below_ms", law.below_ms}, {"least_factor", law.factor(law.least_ms)}};
  }
  return {{"output", trained.output.string()},
          {"device", identity.device},
          {"device_fingerprint", identity.fingerprint},
          {"runtime", identity.runtime},
          {"precision", identity.precision},
          {"method", identity.method},
          {"networks", identity.networks},
          {"cross_validation_mape", trained.mape},
          {"overhead_ms", trained.overhead.network_ms},
          {"overhead_per_kernel_ms", trained.overhead.kernel_ms},
          {"short_networks", std::move(short_networks)},
          {"per_type", std::move(kinds)},
          {"left_out", trained.left_out}};
}

Json to_json(const Predictions& predictions) {
  Json list = Json::array();
  for (const auto& model : predictions.models) list.push_back(model_json(predictions, model));
  return list;
}

Json to_json(const Evaluation& evaluation) {
  Json kinds = Json::array();
  for (const auto& kind : evaluation.kinds) {
    kinds.push_back({{"type", kind.kind},
                     {"kernels", kind.kernels},
                     {"mape", kind.mape},
                     {"share", kind.share}});
  }
  Json networks = Json::array();
  for (const auto& network : evaluation.networks) {
    networks.push_back({{"model", network.name},
                        {"measured_ms", network.measured_ms},
                        {"predicted_ms", network.predicted_ms},
                        {"interval90", ends(network.interval90)},
                        {"unpriced", network.unpriced}});
  }
  return {{"models", evaluation.networks.size()},
          {"device", evaluation.predictor.device},
          {"method", evaluation.predictor.method},
          {"mape", evaluation.mape},
          {"within_5pct", evaluation.within_5pct},
          {"within_10pct", evaluation.within_10pct},
          {"coverage90", evaluation.coverage90},
          {"per_type", std::move(kinds)},
          {"networks", std::move(networks)},
          {"left_out", evaluation.left_out},
          {"advice", evaluation.advice}};
}

}  // namespace fleetfit::app
