#include "graph/ncnn/input_layer.h"

#include <algorithm>
#include <array>

namespace fleetfit::graph::ncnn {
namespace {

/// Extents without the batch, outermost first, 0 where the file leaves them open.
Shape declared_extents(Params& params) {
  const auto w = params.integer({.id = 0, .name = "w"});
  const auto h = params.integer({.id = 1, .name = "h"});
  const auto d = params.integer({.id = 11, .name = "d"});
  const auto c = params.integer({.id = 2, .name = "c"});
  if (d > 0) return {c, d, h, w};
  const bool is_image = c > 0 || w == 0;
  if (is_image) return {c, h, w};
  return h > 0 ? Shape{h, w} : Shape{w};
}

std::string_view name_of_axis(std::size_t from_end) {
  constexpr std::array<std::string_view, 3> kNames = {"width", "height", "channels"};
  return from_end < kNames.size() ? kNames[from_end] : "depth";
}

struct OpenInput {
  Tensor tensor;
  std::vector<AssumedDimension> assumed;
};

OpenInput with_open_extents(const Shape& declared, const ImportOptions& options) {
  OpenInput input;
  input.tensor.dtype = DType::f32;
  input.tensor.shape = Shape{1};
  input.tensor.symbols = {""};
  for (std::size_t i = 0; i < declared.size(); ++i) {
    auto extent = declared[i];
    std::string symbol;
    if (extent == 0) {
      symbol = name_of_axis(declared.size() - 1 - i);
      const auto given = options.dimensions.find(symbol);
      const bool is_given = given != options.dimensions.end();
      extent = is_given ? given->second : options.open_extent;
      if (!is_given) input.assumed.push_back({.name = symbol, .extent = extent});
    }
    input.tensor.shape->push_back(extent);
    input.tensor.symbols.push_back(symbol);
  }
  return input;
}

}  // namespace

Status add_input(GraphWriter& writer, Layer& layer,
                 const std::map<std::string_view, std::int64_t>& wanted) {
  if (!layer.inputs.empty() || layer.outputs.size() != 1)
    return core::within(place(layer),
                        {ErrorCode::invalid_input, "an input has no inputs and one output"});
  auto declared = declared_extents(layer.params);
  if (!layer.params.status()) return core::within(place(layer), layer.params.status().error());
  const auto channels = wanted.find(layer.outputs[0]);
  if (declared.size() == 3 && declared[0] == 0 && channels != wanted.end())
    declared[0] = channels->second;

  auto input = with_open_extents(declared, writer.options());
  auto& tensor = input.tensor;
  tensor.name = layer.outputs[0];
  if (input.assumed.empty() &&
      std::all_of(tensor.symbols.begin(), tensor.symbols.end(),
                  [](const std::string& symbol) { return symbol.empty(); }))
    tensor.symbols.clear();
  if (const auto count = element_count(*tensor.shape); !count)
    return core::within(place(layer), count.error());
  for (auto& assumed : input.assumed) {
    assumed.input = tensor.name;
    writer.assumed().push_back(assumed);
  }
  const auto dims = static_cast<int>(declared.size());
  const auto id = writer.graph().add_tensor(std::move(tensor));
  writer.graph().inputs.push_back(id);
  writer.define(layer.outputs[0], {.tensor = id, .dims = dims}, layer.line);
  if (!writer.status()) return core::within(place(layer), writer.status().error());
  return {};
}

}  // namespace fleetfit::graph::ncnn
