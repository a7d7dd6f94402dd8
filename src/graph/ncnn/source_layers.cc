#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

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

std::span<const LayerType> source_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
