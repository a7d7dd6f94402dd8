#include "fleetfit/predict/network_json.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "fleetfit/core/base64.h"

namespace fleetfit::predict {
namespace {

using core::JsonView;
using Json = nlohmann::json;

constexpr std::int64_t kMaxWidth = 1 << 16;

// The bytes of the numbers, the lowest first, whatever the machine's order.
std::string bytes_of(std::span<const float> values) {
  std::string bytes;
  bytes.reserve(values.size() * 4);
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<char>((bits >> shift) & 0xff));
  }
  return bytes;
}

std::vector<float> numbers_of(std::string_view bytes) {
  std::vector<float> values(bytes.size() / 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < 4; ++byte)
      bits |= std::uint32_t{static_cast<unsigned char>(bytes[4 * i + byte])} << (8 * byte);
    values[i] = std::bit_cast<float>(bits);
  }
  return values;
}

std::string_view to_string(Transform transform) {
  return transform == Transform::logarithm ? "log" : "plain";
}

Result<Transform> read_transform(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto text, json.text("transform"));
  if (text == "plain") return Transform::plain;
  if (text == "log") return Transform::logarithm;
  return json.at("transform")->error(R"(expected "plain" or "log")");
}

Result<std::vector<float>> read_floats(const JsonView& json, std::string_view key) {
  FLEETFIT_ASSIGN(const auto text, json.text(key));
  const auto bytes = core::decode_base64(text);
  if (!bytes || bytes->size() % 4 != 0)
    return json.at(key)->error("expected 32-bit floats in base64");
  return numbers_of(*bytes);
}

Result<DenseLayer> read_layer(const JsonView& json) {
  FLEETFIT_TRY(json.allow_only({"inputs", "outputs", "weights", "bias"}));
  FLEETFIT_ASSIGN(const auto inputs, json.integer("inputs", {1, kMaxWidth}));
  FLEETFIT_ASSIGN(const auto outputs, json.integer("outputs", {1, kMaxWidth}));
  FLEETFIT_ASSIGN(auto weights, read_floats(json, "weights"));
  FLEETFIT_ASSIGN(auto bias, read_floats(json, "bias"));
  return DenseLayer{.inputs = static_cast<std::size_t>(inputs),
                    .outputs = static_cast<std::size_t>(outputs),
                    .weights = std::move(weights),
                    .bias = std::move(bias)};
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
                    {"weights", core::encode_base64(bytes_of(layer.weights))},
                    {"bias", core::encode_base64(bytes_of(layer.bias))}});
  }
  return list;
}

Result<InputScaling> read_input_scaling(const JsonView& json) {
  FLEETFIT_TRY(json.allow_only({"transform", "mean", "scale"}));
  FLEETFIT_ASSIGN(const auto transform, read_transform(json));
  FLEETFIT_ASSIGN(auto mean, json.numbers("mean"));
  FLEETFIT_ASSIGN(auto scale, json.numbers("scale"));
  return InputScaling{.transform = transform, .mean = std::move(mean), .scale = std::move(scale)};
}

Result<OutputScaling> read_output_scaling(const JsonView& json) {
  FLEETFIT_TRY(json.allow_only({"transform", "offset", "scale", "min", "max"}));
  FLEETFIT_ASSIGN(const auto transform, read_transform(json));
  std::array<double, 4> values{};
  constexpr std::array<std::string_view, 4> kKeys = {"offset", "scale", "min", "max"};
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    FLEETFIT_ASSIGN(values[i], json.number(kKeys[i]));
  }
  return OutputScaling{.transform = transform,
                       .offset = values[0],
                       .scale = values[1],
                       .min = values[2],
                       .max = values[3]};
}

Result<std::vector<DenseLayer>> read_layers(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto items, json.items());
  std::vector<DenseLayer> layers;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto layer, read_layer(item));
    layers.push_back(std::move(layer));
  }
  return layers;
}

Status check_type(const JsonView& json, std::string_view type, int version) {
  FLEETFIT_ASSIGN(const auto found, json.text("type"));
  if (found != type) {
    return json.at("type")->error(fmt::format(R"(expected "{}", found "{}")", type, found));
  }
  FLEETFIT_ASSIGN(const auto number, json.integer("version"));
  if (number < 1 || number > version) {
    return json.at("version")->error(fmt::format(
        "version {} of {} is not known; this program reads up to {}", number, type, version));
  }
  return {};
}

}  // namespace fleetfit::predict
