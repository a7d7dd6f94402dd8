#include "predict/network_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace fleetfit::predict {
namespace {

using core::JsonView;
using Json = nlohmann::json;

constexpr std::int64_t kMaxWidth = 1 << 16;

// The double with the fewest digits that reads back as this float: 0.1, not 0.10000000149011612.
double short_decimal(float value) {
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = 0;
  std::from_chars(text.data(), written.ptr, result);
  return result;
}

Json numbers(std::span<const float> values) {
  Json list = Json::array();
  auto& items = list.get_ref<Json::array_t&>();
  items.reserve(values.size());
  for (const float value : values) items.emplace_back(short_decimal(value));
  return list;
}

std::string_view to_string(Transform transform) {
  return transform == Transform::logarithm ? "log" : "plain";
}

Result<Transform> read_transform(const JsonView& json) {
  const auto text = json.text("transform");
  if (!text) return tl::unexpected(text.error());
  if (*text == "plain") return Transform::plain;
  if (*text == "log") return Transform::logarithm;
  return json.at("transform")->error("expected \"plain\" or \"log\"");
}

Result<std::vector<float>> read_floats(const JsonView& json, std::string_view key) {
  const auto values = json.numbers(key);
  if (!values) return tl::unexpected(values.error());
  std::vector<float> floats(values->size());
  std::transform(values->begin(), values->end(), floats.begin(),
                 [](double value) { return static_cast<float>(value); });
  return floats;
}

Result<DenseLayer> read_layer(const JsonView& json) {
  if (auto known = json.allow_only({"inputs", "outputs", "weights", "bias"}); !known)
    return tl::unexpected(std::move(known.error()));
  const auto inputs = json.integer("inputs", {1, kMaxWidth});
  if (!inputs) return tl::unexpected(inputs.error());
  const auto outputs = json.integer("outputs", {1, kMaxWidth});
  if (!outputs) return tl::unexpected(outputs.error());
  auto weights = read_floats(json, "weights");
  if (!weights) return tl::unexpected(std::move(weights.error()));
  auto bias = read_floats(json, "bias");
  if (!bias) return tl::unexpected(std::move(bias.error()));
  return DenseLayer{.inputs = static_cast<std::size_t>(*inputs),
                    .outputs = static_cast<std::size_t>(*outputs),
                    .weights = *std::move(weights),
                    .bias = *std::move(bias)};
}

}  // namespace

Json to_json(const InputScaling& scaling) {
  return {{"transform", to_string(scaling.transform)},
          {"mean", scaling.mean},
          {"scale", scaling.scale}};
}

Json to_json(const OutputScaling& scaling) {
  return {{"transform", to_string(scaling.transform)},
          {"offset", scaling.offset},
          {"scale", scaling.scale},
          {"min", scaling.min},
          {"max", scaling.max}};
}

Json to_json(std::span<const DenseLayer> layers) {
  Json list = Json::array();
  for (const auto& layer : layers) {
    list.push_back({{"inputs", layer.inputs},
                    {"outputs", layer.outputs},
                    {"weights", numbers(layer.weights)},
                    {"bias", numbers(layer.bias)}});
  }
  return list;
}

Result<InputScaling> read_input_scaling(const JsonView& json) {
  if (auto known = json.allow_only({"transform", "mean", "scale"}); !known)
    return tl::unexpected(std::move(known.error()));
  const auto transform = read_transform(json);
  if (!transform) return tl::unexpected(transform.error());
  auto mean = json.numbers("mean");
  if (!mean) return tl::unexpected(std::move(mean.error()));
  auto scale = json.numbers("scale");
  if (!scale) return tl::unexpected(std::move(scale.error()));
  return InputScaling{
      .transform = *transform, .mean = *std::move(mean), .scale = *std::move(scale)};
}

Result<OutputScaling> read_output_scaling(const JsonView& json) {
  if (auto known = json.allow_only({"transform", "offset", "scale", "min", "max"}); !known)
    return tl::unexpected(std::move(known.error()));
  const auto transform = read_transform(json);
  if (!transform) return tl::unexpected(transform.error());
  std::array<double, 4> values{};
  constexpr std::array<std::string_view, 4> kKeys = {"offset", "scale", "min", "max"};
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    const auto value = json.number(kKeys[i]);
    if (!value) return tl::unexpected(value.error());
    values[i] = *value;
  }
  return OutputScaling{.transform = *transform,
                       .offset = values[0],
                       .scale = values[1],
                       .min = values[2],
                       .max = values[3]};
}

Result<std::vector<DenseLayer>> read_layers(const JsonView& json) {
  const auto items = json.items();
  if (!items) return tl::unexpected(items.error());
  std::vector<DenseLayer> layers;
  for (const auto& item : *items) {
    auto layer = read_layer(item);
    if (!layer) return tl::unexpected(std::move(layer.error()));
    layers.push_back(*std::move(layer));
  }
  return layers;
}

Status check_type(const JsonView& json, std::string_view type, int version) {
  const auto found = json.text("type");
  if (!found) return tl::unexpected(found.error());
  if (*found != type) {
    return json.at("type")->error(fmt::format("expected \"{}\", found \"{}\"", type, *found));
  }
  const auto number = json.integer("version");
  if (!number) return tl::unexpected(number.error());
  if (*number < 1 || *number > version) {
    return json.at("version")->error(fmt::format(
        "version {} of {} is not known; this program reads up to {}", *number, type, version));
  }
  return {};
}

}  // namespace fleetfit::predict
