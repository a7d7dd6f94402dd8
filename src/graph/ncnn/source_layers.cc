#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

// --- Input

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

// --- MemoryData

std::int64_t extent(Conversion& c, int id, std::string_view name) {
  return c.params().integer({.id = id, .name = name});
}

void memory_data(Conversion& c) {
  const auto w = extent(c, 0, "w");
  const auto h = extent(c, 1, "h");
  const auto d = extent(c, 11, "d");
  const auto channels = extent(c, 2, "c");
  Shape shape{1};
  for (const auto value : {channels, d, h, w}) {
    if (value > 0) shape.push_back(value);
  }
  if (w < 1) return c.fail("parameter 0 (w) is missing");
  const auto id = c.filled({}, shape, 0, 1);
  c.writer().graph().nodes.push_back(
      {.name = std::string(c.layer().name), .op = Constant{}, .inputs = {}, .outputs = {id}});
  c.output(0, id);
}

// --- Layers that compute nothing

/// ncnn's Split hands one blob to several readers. A tensor here may have any number of readers, so
/// its outputs are other names for the input and there is no node.
void split(Conversion& c) {
  const auto blob = c.blob(0);
  for (std::size_t i = 0; i < c.output_count(); ++i) c.alias(i, blob);
}

/// Outputs are the inputs at the same place. Files end with one that has more inputs to have them
/// all computed, so what it reads are results of the network.
void noop(Conversion& c) {
  if (c.output_count() > c.input_count()) return c.fail("it has more outputs than inputs");
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    const auto blob = c.blob(i);
    if (i < c.output_count())
      c.alias(i, blob);
    else
      c.writer().mark_output(blob.tensor);
  }
}

constexpr std::array<LayerType, 3> kLayers = {{
    {"MemoryData", memory_data},
    {"Split", split},
    {"Noop", noop},
}};

// --- What an input's readers tell

bool keeps_channels(std::string_view type) {
  constexpr std::array<std::string_view, 10> kTypes = {
      "Split", "Padding", "Pooling",   "Interp", "BinaryOp",
      "ReLU",  "Scale",   "BatchNorm", "Bias",   "Dropout"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

std::optional<std::int64_t> input_channels(const Layer& layer) {
  auto params = layer.params;
  const auto number = [&](int id, std::int64_t fallback) {
    return params.integer({.id = id, .fallback = fallback, .low = 1, .high = 1 << 30});
  };
  const auto width = number(1, 1);
  const auto per_output = number(6, 1) / number(0, 1) / width;
  const auto channels = per_output / number(11, width);
  const auto groups = number(7, 1);
  if (!params.status() || channels < 1) return std::nullopt;
  return channels * groups;
}

}  // namespace

std::map<std::string_view, std::int64_t> channels_of_inputs(std::span<const Layer> layers) {
  std::map<std::string_view, std::string_view> origin;  // of blobs with the channels of an input
  std::map<std::string_view, std::int64_t> channels;
  for (const auto& layer : layers) {
    if (layer.type == "Input") {
      for (const auto name : layer.outputs) origin[name] = name;
      continue;
    }
    const auto found = layer.inputs.empty() ? origin.end() : origin.find(layer.inputs[0]);
    if (found == origin.end()) continue;
    if (layer.type == "Convolution" || layer.type == "ConvolutionDepthWise") {
      if (const auto count = input_channels(layer)) channels.try_emplace(found->second, *count);
    } else if (keeps_channels(layer.type)) {
      for (const auto name : layer.outputs) origin[name] = found->second;
    }
  }
  return channels;
}

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

std::span<const LayerType> source_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
