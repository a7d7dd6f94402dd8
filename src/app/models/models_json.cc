#include <nlohmann/json.hpp>

#include "fleetfit/app/models.h"
#include "fleetfit/core/json.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

Json tensor_json(const TensorSummary& tensor) {
  Json json{{"name", tensor.name}, {"shape", core::or_null(tensor.shape)}, {"dtype", tensor.dtype}};
  if (!tensor.symbols.empty()) {
    auto& symbols = json["symbols"] = Json::array();
    for (const auto& symbol : tensor.symbols)
      symbols.push_back(symbol.empty() ? Json() : Json(symbol));
  }
  if (tensor.scale)
    json["quantization"] = {{"scale", *tensor.scale}, {"zero_point", *tensor.zero_point}};
  return json;
}

Json operator_json(const OperatorSummary& op) {
  Json json{{"name", op.name},
            {"type", op.type},
            {"flops", core::or_null(op.flops)},
            {"params", core::or_null(op.params)},
            {"input_bytes", core::or_null(op.input_bytes)},
            {"output_bytes", core::or_null(op.output_bytes)},
            {"weight_bytes", core::or_null(op.weight_bytes)},
            {"output_shape", core::or_null(op.output_shape)}};
  if (!op.activation.empty()) json["activation"] = op.activation;
  return json;
}

Json unsupported_json(const UnsupportedOperator& op) {
  return {{"name", op.name}, {"type", op.type}, {"why", op.why}};
}

Json assumed_json(const AssumedExtent& one) {
  return {{"input", one.input}, {"dimension", one.dimension}, {"extent", one.extent}};
}

template <class T, class ToJson>
Json list_json(const std::vector<T>& items, ToJson to) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to(item));
  return list;
}

}  // namespace

Json to_json(const ModelSummary& summary) {
  return {{"format", summary.format},
          {"inputs", list_json(summary.inputs, tensor_json)},
          {"outputs", list_json(summary.outputs, tensor_json)},
          {"ops", list_json(summary.ops, operator_json)},
          {"totals",
           {{"flops", summary.totals.flops},
            {"params", summary.totals.params},
            {"weight_bytes", summary.totals.weight_bytes},
            {"peak_activation_bytes", summary.totals.peak_activation_bytes},
            {"peak_is_least", summary.totals.peak_is_least}}},
          {"unsupported", list_json(summary.unsupported, unsupported_json)},
          {"assumed", list_json(summary.assumed, assumed_json)}};
}

Json to_json(const ConvertSummary& summary) {
  return {{"output", summary.output},
          {"ops_before", summary.ops_before},
          {"ops_after", summary.ops_after},
          {"bytes", summary.bytes}};
}

Json to_json(const std::vector<ZooSummary>& networks) {
  return list_json(networks, [](const ZooSummary& n) {
    return Json{{"name", n.name},
                {"family", n.family},
                {"flops", n.flops},
                {"params", n.params},
                {"input", n.input}};
  });
}

Json to_json(const WrittenModel& model) {
  return {{"name", model.name}, {"file", model.file}, {"bytes", model.bytes}};
}

Json to_json(const std::vector<WrittenModel>& models) {
  return list_json(models, [](const WrittenModel& m) { return to_json(m); });
}

}  // namespace fleetfit::app
