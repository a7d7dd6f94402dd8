#include "fleetfit/predict/dense_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fleetfit/predict/network_json.h"
#include "predict/regressors/packed_layer.h"

namespace fleetfit::predict {
namespace {

using core::JsonView;

constexpr std::string_view kType = "mlp";
constexpr int kVersion = 1;
constexpr std::size_t kBlock = 64;  // rows whose values stay in the cache from layer to layer

Result<DenseNetwork::Parts> read_parts(const JsonView& json) {
  FLEETFIT_TRY(json.allow_only({"type", "version", "inputs", "layers", "output"}));
  FLEETFIT_TRY(check_type(json, kType, kVersion));
  FLEETFIT_ASSIGN(auto inputs, json.at("inputs").and_then(read_input_scaling));
  FLEETFIT_ASSIGN(auto layers, json.at("layers").and_then(read_layers));
  FLEETFIT_ASSIGN(const auto output, json.at("output").and_then(read_output_scaling));
  return DenseNetwork::Parts{
      .inputs = std::move(inputs), .layers = std::move(layers), .output = output};
}

}  // namespace

struct DenseNetwork::Packed {
  std::vector<PackedLayer> layers;
};

DenseNetwork::DenseNetwork(Parts parts)
    : parts_(std::move(parts)), packed_(new Packed{.layers = pack(parts_.layers)}) {}
DenseNetwork::DenseNetwork(DenseNetwork&&) noexcept = default;
DenseNetwork& DenseNetwork::operator=(DenseNetwork&&) noexcept = default;
DenseNetwork::~DenseNetwork() = default;

Result<DenseNetwork> DenseNetwork::make(Parts parts) {
  FLEETFIT_TRY(check(parts.inputs));
  FLEETFIT_TRY(check_chain(parts.layers, parts.inputs.mean.size(), "layers"));
  if (parts.layers.back().outputs != 1) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("layers: the last gives {} numbers, expected 1", parts.layers.back().outputs));
  }
  FLEETFIT_TRY(check(parts.output));
  return DenseNetwork(std::move(parts));
}

Result<std::unique_ptr<Regressor>> DenseNetwork::from_json(const JsonView& json,
                                                           std::size_t features) {
  FLEETFIT_ASSIGN(auto parts, read_parts(json));
  auto network = make(std::move(parts));
  if (!network) return json.error(network.error().message);
  if (network->features() != features) {
    return json.error(
        fmt::format("takes {} features, but there are {}", network->features(), features));
  }
  return std::make_unique<DenseNetwork>(*std::move(network));
}

std::size_t DenseNetwork::features() const { return parts_.inputs.mean.size(); }

void DenseNetwork::predict(const MatrixView& rows, std::span<double> out) const {
  const std::size_t count = rows.rows();
  std::vector<float> values;
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t block = std::min(kBlock, count - first);
    values.resize(block * features());
    for (std::size_t r = 0; r < block; ++r)
      scale_inputs(parts_.inputs, rows.row(first + r),
                   std::span(values).subspan(r * features(), features()));
    apply_layers(packed_->layers, block, values, Activation::none);
    for (std::size_t r = 0; r < block; ++r)
      out[first + r] = scaled_output(parts_.output, values[r]);
  }
}

nlohmann::json DenseNetwork::to_json() const {
  return {{"type", kType},
          {"version", kVersion},
          {"inputs", predict::to_json(parts_.inputs)},
          {"layers", predict::to_json(std::span<const DenseLayer>(parts_.layers))},
          {"output", predict::to_json(parts_.output)}};
}

const DenseNetwork::Parts& DenseNetwork::parts() const { return parts_; }

}  // namespace fleetfit::predict
