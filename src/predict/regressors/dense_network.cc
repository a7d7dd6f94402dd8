#include "fleetfit/predict/dense_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "predict/model_fields.h"
#include "predict/regressors/packed_layer.h"

namespace fleetfit::predict {
namespace {

using core::JsonView;

constexpr DocumentKind kMlp{.type = "mlp", .version = 1};
constexpr std::size_t kBlock = 64;  // rows whose values stay in the cache from layer to layer

}  // namespace

core::Fields fields_of(const DenseNetwork::Parts*) {
  using Parts = DenseNetwork::Parts;
  static constexpr core::Field kAll[] = {core::other_field("type"), core::other_field("version"),
                                         core::field<&Parts::inputs>("inputs"),
                                         core::field<&Parts::layers>("layers"),
                                         core::field<&Parts::output>("output")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

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
  FLEETFIT_ASSIGN(auto parts, read_of_kind<Parts>(json, kMlp));
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

nlohmann::json DenseNetwork::to_json() const { return json_of_kind(parts_, kMlp); }

const DenseNetwork::Parts& DenseNetwork::parts() const { return parts_; }

}  // namespace fleetfit::predict
