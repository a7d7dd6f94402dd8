#include "fleetfit/train/segmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::train {
namespace {

using graph::Graph;

constexpr std::size_t kImageRank = 4;  // batch, channels, height, width
constexpr std::int64_t kHeadChannels = 64;

/// Whether nodes behind number `last` read nothing that was computed before but its output.
bool is_cut_behind(const Graph& network, std::size_t last) {
  const auto made_by = graph::producers(network);
  const auto fixed = graph::static_tensors(network);
  for (std::size_t n = last + 1; n < network.nodes.size(); ++n) {
    for (const auto id : network.nodes[n].inputs) {
      if (id == graph::kNoTensor || fixed[static_cast<std::size_t>(id)]) continue;
      const auto maker = made_by[static_cast<std::size_t>(id)];
      if (maker < static_cast<int>(last)) return false;
    }
  }
  return true;
}

/// The node that makes the last feature map.
std::optional<std::size_t> last_map(const Graph& classifier) {
  for (std::size_t n = classifier.nodes.size(); n-- > 0;) {
    const auto& outputs = classifier.nodes[n].outputs;
    if (outputs.size() != 1 || !is_map(classifier.tensor(outputs[0]))) continue;
    if (is_cut_behind(classifier, n)) return n;
  }
  return std::nullopt;
}

/// All up to the last feature map, for images of the size asked for.
Result<Graph> backbone_of(const Graph& classifier, const SegmentationOptions& options) {
  if (classifier.inputs.size() != 1 || !is_map(classifier.tensor(classifier.inputs[0])))
    return refuse("its input is not one image");
  const auto last = last_map(classifier);
  if (!last)
    return refuse("it has no feature map behind which a head for segmentation could stand");
  Graph backbone = classifier;
  backbone.nodes.resize(*last + 1);
  backbone.outputs = backbone.nodes[*last].outputs;
  auto& input = backbone.tensor(backbone.inputs[0]);
  (*input.shape)[2] = options.height;
  (*input.shape)[3] = options.width;
  if (!input.symbols.empty()) input.symbols[2] = input.symbols[3] = "";
  for (const auto& node : backbone.nodes) {
    for (const auto id : node.outputs)
      if (id != graph::kNoTensor && !backbone.tensor(id).is_constant())
        backbone.tensor(id).shape.reset();
  }
  FLEETFIT_TRY(graph::infer_shapes(backbone));
  return backbone;
}

Result<Graph> head_for(const graph::Shape& features, const SegmentationOptions& options) {
  const auto factor = options.height / std::max<std::int64_t>(features[2], 1);
  if (factor * features[2] != options.height || factor * features[3] != options.width)
    return refuse(
        fmt::format("its last feature map is {}, which cannot be stretched evenly to {} x "
                    "{} pixels",
                    graph::to_string(features), options.height, options.width));
  graph::NetBuilder net("head", options.seed);
  auto x = net.input("features", features);
  x = net.conv_bn(x, {.out = kHeadChannels, .kernel = 3}, graph::kRelu);
  x = net.conv(x, {.out = options.classes, .bias = true});
  if (factor > 1) x = net.resize(x, static_cast<double>(factor), graph::ResizeMode::linear);
  net.output(x, "classes");
  return std::move(net).finish();
}

/// Names that say what a node is of, instead of the number of its block.
std::string renamed(const std::string& name) {
  constexpr std::string_view kBackbone = "b0/";
  constexpr std::string_view kHead = "b1/";
  if (name.starts_with(kBackbone)) return name.substr(kBackbone.size());
  return name.starts_with(kHead) ? "head/" + name.substr(kHead.size()) : name;
}

}  // namespace

bool is_map(const graph::Tensor& output) {
  constexpr std::size_t kRank = 4;  // batch, classes, height, width
  const auto& shape = output.shape;
  return shape && shape->size() == kRank && ((*shape)[2] > 1 || (*shape)[3] > 1);
}

Status check_label_form(const graph::Tensor& input, const graph::Tensor& output,
                        const data::Dataset& data) {
  FLEETFIT_ASSIGN(const auto first, data.item(0));
  const bool of_pixels = !first.mask.empty();
  if (is_map(output) != of_pixels)
    return refuse(fmt::format("output '{}' has a class for each {}, the data one for each {}",
                              output.name, of_pixels ? "image" : "pixel",
                              of_pixels ? "pixel" : "image"));
  if (!of_pixels) return {};
  const auto& in = *input.shape;
  const auto& out = *output.shape;
  if (in.size() == out.size() && in[2] == out[2] && in[3] == out[3]) return {};
  return refuse(
      fmt::format("output '{}' is {}, and should have a class for each pixel of the input, "
                  "which is {}",
                  output.name, graph::to_string(out), graph::to_string(in)));
}

bool is_segmentation(const graph::Graph& network) {
  return network.outputs.size() == 1 && is_map(network.tensor(network.outputs[0]));
}

Result<Graph> with_segmentation_head(const Graph& classifier, const SegmentationOptions& options) {
  FLEETFIT_ASSIGN(auto backbone, backbone_of(classifier, options));
  const auto features = backbone.tensor(backbone.outputs[0]).shape;
  if (!features || features->size() != kImageRank)
    return refuse("the size of its last feature map is not known");
  FLEETFIT_ASSIGN(auto head, head_for(*features, options));
  elastic::Supernet chain{.name = classifier.name};
  chain.blocks.push_back({.name = "backbone", .branches = {{.graph = std::move(backbone)}}});
  chain.blocks.push_back({.name = "head", .branches = {{.graph = std::move(head)}}});
  auto joined = elastic::join({chain}, {{.block = 0}, {.block = 1}});
  if (!joined) return joined;
  for (auto& node : joined->nodes) node.name = renamed(node.name);
  for (auto& tensor : joined->tensors) tensor.name = renamed(tensor.name);
  return joined;
}

}  // namespace fleetfit::train
