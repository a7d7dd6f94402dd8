#include "fleetfit/learned/design_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace fleetfit::learned {
namespace {

using predict::DenseLayer;

void add_row(const float* row, std::span<float> out) {
  float* const sums = out.data();
  for (std::size_t i = 0; i < out.size(); ++i) sums[i] += row[i];
}

/// out = bias + the rows of the columns that are 1.
void apply_sparse(const DenseLayer& layer, std::span<const std::uint32_t> taken,
                  std::span<float> out) {
  std::ranges::copy(layer.bias, out.begin());
  for (const auto column : taken) add_row(layer.weights.data() + column * layer.outputs, out);
}

void cut_negative(std::span<float> values) {
  for (float& value : values) value = std::max(value, 0.0F);
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

DesignColumns::DesignColumns(const space::Space& space) : space_(&space) {
  one_hot_ = space.find_encoding("one-hot").value();
  live_ = space.find_encoding("live").value();
  width_ = space.encodings()[one_hot_].features.size();
  const auto counts = space.find_encoding("counts").value();
  tells_live_ = std::ranges::any_of(space.encodings()[counts].features, [](const auto& name) {
    return std::string_view(name).starts_with("live ");
  });
}

std::size_t DesignColumns::taken(space::Design design, std::span<std::uint32_t> out) const {
  assert(out.size() >= most_taken());
  std::size_t count = space_->taken_columns(design, one_hot_, out);
  if (!tells_live_) return count;
  const auto rest = out.subspan(count);
  const std::size_t live = space_->taken_columns(design, live_, rest);
  for (auto& column : rest.first(live)) column += static_cast<std::uint32_t>(width_);
  return count + live;
}

void add_dense(const DenseLayer& layer, std::span<const float> row, std::span<float> out) {
  const std::size_t outputs = layer.outputs;
  float* const sums = out.data();
  for (std::size_t i = 0; i < outputs; ++i) sums[i] += layer.bias[i];
  for (std::size_t input = 0; input < layer.inputs; ++input) {
    const float value = row[input];
    if (value == 0) continue;  // half of them, after ReLU
    const float* const weights = layer.weights.data() + input * outputs;
    for (std::size_t i = 0; i < outputs; ++i) sums[i] += value * weights[i];
  }
}

Status check_layer(const DenseLayer& layer, std::size_t inputs, std::size_t outputs,
                   const std::string& name) {
  if (layer.inputs != inputs || layer.outputs != outputs) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: a layer of {} x {} numbers, expected {} x {}", name, layer.inputs,
                            layer.outputs, inputs, outputs));
  }
  if (layer.weights.size() != inputs * outputs || layer.bias.size() != outputs)
    return fail(ErrorCode::invalid_input, name + ": not as many weights as the layer's sizes say");
  if (!all_finite(layer.weights) || !all_finite(layer.bias))
    return fail(ErrorCode::invalid_input, name + ": a weight is not finite");
  return {};
}

Result<DesignNetwork> DesignNetwork::make(Parts parts, std::size_t columns) {
  if (parts.layers.empty()) return fail(ErrorCode::invalid_input, "layers: there is none");
  std::size_t inputs = columns;
  for (std::size_t i = 0; i < parts.layers.size(); ++i) {
    const auto& layer = parts.layers[i];
    const bool is_last = i + 1 == parts.layers.size();
    const std::size_t outputs = is_last ? parts.skip.outputs : layer.outputs;
    FLEETFIT_TRY(check_layer(layer, inputs, outputs, fmt::format("layers[{}]", i)));
    inputs = outputs;
  }
  FLEETFIT_TRY(check_layer(parts.skip, columns, inputs, "skip"));
  return DesignNetwork(std::move(parts));
}

DesignNetwork::DesignNetwork(Parts parts) : parts_(std::move(parts)) {
  for (const auto& layer : parts_.layers) widest_ = std::max(widest_, layer.outputs);
}

void DesignNetwork::apply(std::span<const std::uint32_t> taken, std::span<float> out,
                          std::vector<float>& scratch) const {
  apply_sparse(parts_.skip, taken, out);
  scratch.resize(2 * widest_);
  auto values = std::span(scratch).first(widest_);
  auto next = std::span(scratch).subspan(widest_);
  const auto& layers = parts_.layers;
  if (layers.size() == 1) {
    add_row(layers[0].bias.data(), out);
    for (const auto column : taken) add_row(&layers[0].weights[column * layers[0].outputs], out);
    return;
  }
  apply_sparse(layers[0], taken, values.first(layers[0].outputs));
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const auto row = values.first(layers[i].inputs);
    cut_negative(row);
    if (i + 1 == layers.size()) {
      add_dense(layers[i], row, out);
      break;
    }
    const auto sums = next.first(layers[i].outputs);
    std::ranges::fill(sums, 0.0F);
    add_dense(layers[i], row, sums);
    std::swap(values, next);
  }
}

}  // namespace fleetfit::learned
