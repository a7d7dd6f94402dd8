#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "fleetfit/graph/resize.h"
#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

Outcomes infer(const Pad& op, const Operands& in) {
  const auto pads = in.ints(1);
  if (in.shape(0) == nullptr || !pads) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  const auto rank = shape.size();
  if (pads->size() != 2 * rank) return misfit("{} pads for {} dimensions", pads->size(), rank);
  for (std::size_t i = 0; i < rank; ++i) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const auto begin = (*pads)[i];
    const auto end = (*pads)[rank + i];
    // std::abs of the lowest number would overflow.
    if (std::min(begin, end) < -kMost || std::max(begin, end) > kMost) {
      return misfit("pads are absurdly large");
    }
    if (op.mode == PadMode::reflect && (begin >= shape[i] || end >= shape[i]) &&
        (begin > 0 || end > 0)) {
      return misfit("{} elements cannot be reflected by {} and {}", shape[i], begin, end);
    }
    shape[i] += begin + end;
    if (shape[i] < 0) return misfit("pads leave nothing of dimension {}", i);
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const Resize&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  if (const auto sizes = in.ints(3); sizes && !sizes->empty()) {
    if (sizes->size() != shape.size())
      return misfit("{} sizes for {} dimensions", sizes->size(), shape.size());
    return one(in.dtype(0), Shape(sizes->begin(), sizes->end()));
  }
  const auto scales = in.numbers(2);
  if (!scales || scales->empty()) return open(in.dtype(0));
  if (scales->size() != shape.size())
    return misfit("{} scales for {} dimensions", scales->size(), shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto extent = std::floor(static_cast<double>(shape[i]) * (*scales)[i]);
    if (!(extent >= 0 && extent < 0x1p40)) return misfit("a scale of {}", (*scales)[i]);
    shape[i] = static_cast<std::int64_t>(extent);
  }
  return one(in.dtype(0), shape);
}

void link(const Resize&, ChannelLinks& links) {
  if (links.has(3)) return links.pin_node();
  links.same_where_equal();
}

bool hands_on(const Pad&, const Graph& graph, const Node& node) {
  return all_equal_to<std::int64_t>(ints_of(graph, node, 1), 0);
}

bool hands_on(const Resize&, const Graph& graph, const Node& node) {
  if (!keeps_shape(graph, node)) return false;
  // A factor a little above one may keep the shape, but not the samples.
  if (!has_input(node, 2)) return true;
  const auto& scales = graph.tensor(node.inputs[2]).shape;
  if (scales && elements(*scales) == 0) return true;
  return all_equal_to<double>(constant_numbers(graph, node.inputs[2]), 1.0);
}

quantization::Role role_of(const Pad& op, const Graph& graph, const Node& node) {
  if (op.mode != PadMode::constant || !has_input(node, 2)) return quantization::Role::moves;
  return single_value(graph, node.inputs[2]) == 0.0 ? quantization::Role::moves
                                                    : quantization::Role::floats;
}

quantization::Role role_of(const Resize& op, const Graph&, const Node&) {
  return op.mode == ResizeMode::cubic ? quantization::Role::floats : quantization::Role::moves;
}

/// Replaces one axis by weighted sums along it.
std::vector<double> interpolate(const std::vector<double>& numbers, const Shape& shape,
                                std::size_t axis, const std::vector<ResizeTaps>& taps) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto outer = elements(Shape(shape.begin(), at));
  const auto inner = elements(Shape(at + 1, shape.end()));
  std::vector<double> result(outer * taps.size() * inner, 0);
  double* out = result.data();
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const auto& sum : taps) {
      for (int t = 0; t < sum.count; ++t) {
        const double* in = numbers.data() + (i * *at + sum.index[t]) * inner;
        for (std::int64_t j = 0; j < inner; ++j) out[j] += sum.weight[t] * in[j];
      }
      out += inner;
    }
  }
  return result;
}

Values nearest(const Resize& op, const Call& call, const std::vector<ResizedAxis>& axes) {
  Offsets indices;
  for (const auto& axis : axes) {
    auto& along = indices.emplace_back(axis.out);
    for (std::int64_t i = 0; i < axis.out; ++i) along[i] = resize_taps(op, axis, i).index[0];
  }
  return one(pick(call.input(0), std::move(indices)));
}

Values smooth(const Resize& op, const Call& call, const std::vector<ResizedAxis>& axes) {
  auto numbers = read<double>(call.input(0));
  auto shape = call.input(0).shape;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto& axis = axes[i];
    if (!axis.changes()) continue;
    std::vector<ResizeTaps> taps;
    for (std::int64_t j = 0; j < axis.out; ++j) taps.push_back(resize_taps(op, axis, j));
    numbers = interpolate(numbers, shape, i, taps);
    shape[i] = axis.out;
  }
  return one(write(call.result(), numbers));
}

Values run(const Pad& op, const Call& call) {
  const auto& x = call.input(0);
  const auto pads = read<std::int64_t>(call.input(1));
  FLEETFIT_ASSIGN(auto indices, padded(op.mode, pads, x.shape, call.result().shape));
  const auto* value = call.optional(2);
  if (value == nullptr) return one(pick(x, std::move(indices)));
  if (value->dtype != x.dtype || elements(value->shape) != 1) {
    return misfit("the padding is not one number of the tensor's type");
  }
  return one(pick(x, std::move(indices), value->data.bytes()));
}

Values run(const Resize& op, const Call& call) {
  const auto& in = call.input(0).shape;
  const auto& out = call.result().shape;
  std::vector<double> scales;
  const auto* sizes = call.optional(3);
  const bool by_sizes = sizes != nullptr && elements(sizes->shape) > 0;
  if (!by_sizes && call.optional(2) != nullptr) scales = read<double>(call.input(2));
  std::vector<ResizedAxis> axes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] == 0 && out[i] > 0) return misfit("dimension {} has no elements", i);
    const double scale =
        by_sizes ? static_cast<double>(out[i]) / static_cast<double>(in[i]) : scales[i];
    axes.push_back({in[i], out[i], scale});
  }
  if (elements(out) == 0) return one(write(call.result(), std::vector<double>{}));
  return op.mode == ResizeMode::nearest ? nearest(op, call, axes) : smooth(op, call, axes);
}

Followed follow(const Pad& op, Adaptation& adaptation) {
  if (!adaptation.reorder(1, 2)) return std::nullopt;
  return op;
}

Followed follow(const Resize& op, Adaptation& adaptation) {
  const bool reordered =
      adaptation.reorder(1, 2) && adaptation.reorder(2, 1) && adaptation.reorder(3, 1);
  if (!reordered) return std::nullopt;
  return op;
}

Result<Operator> read_onnx(const Pad& op, NodeReader& reader) {
  if (reader.opset() < 11) {
    reader.set_input(1, "pads", reader.ints(reader.has("pads") ? "pads" : "paddings"));
    if (const auto value = reader.number("value", 0); value != 0)
      reader.set_input(2, "value", std::vector<float>{value});
  }
  if (reader.node().inputs.size() > 3) return unknown(reader, "padding of chosen axes (opset 18)");
  return op;
}

Result<Operator> convert_upsample(NodeReader& reader) {
  const auto mode = reader.text("mode", "nearest");
  if (const auto* scales = reader.attribute("scales"))
    reader.set_input(1, "scales", scales->floats);
  if (!reader.has_input(1)) return unknown(reader, "its scales are not in the file");
  reader.node().inputs = {reader.input(0), kNoTensor, reader.input(1)};
  return Resize{.mode = mode == "nearest" ? ResizeMode::nearest : ResizeMode::linear,
                .coordinates = CoordinateMode::asymmetric,
                .nearest = NearestMode::floor};
}

Result<Operator> read_onnx(const Resize& op, NodeReader& reader) {
  if (reader.opset() < 11) return convert_upsample(reader);
  if (reader.integer("exclude_outside", 0) != 0)
    return unknown(reader, "weights outside of the image are excluded");
  if (reader.has("axes") || reader.integer("antialias", 0) != 0)
    return unknown(reader, "resizing of chosen axes (opset 18)");
  // An empty region of interest or empty scales mean that there are none.
  for (std::size_t i = 1; i < 3; ++i) {
    const auto values = reader.input_numbers(i);
    if (values && values->empty()) reader.node().inputs[i] = kNoTensor;
  }
  reader.node().inputs.resize(std::max<std::size_t>(reader.node().inputs.size(), 2), kNoTensor);
  reader.node().inputs[1] = kNoTensor;
  return op;
}

/// begin, end, begin, end, … as begins, then ends.
Ints begins_then_ends(const Ints& pairs) {
  Ints pads;
  for (std::size_t i = 0; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  for (std::size_t i = 1; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  return pads;
}

Result<Converted> pad(Conversion& c, PadMode mode) {
  const auto pairs = c.ints(1);
  if (!pairs) return not_known("its pads are not constant");
  if (pairs->size() % 2 != 0) return refuse("its pads are no pairs of numbers");
  std::vector<TensorId> inputs{c.input(0), c.add_ints("pads", begins_then_ends(*pairs))};
  if (c.input(2) != kNoTensor) inputs.push_back(c.input(2));
  return Converted{.op = Pad{mode}, .inputs = std::move(inputs)};
}

CoordinateMode coordinates(const Options& options) {
  if (options.flag("align_corners")) return CoordinateMode::align_corners;
  if (options.flag("half_pixel_centers")) return CoordinateMode::half_pixel;
  return CoordinateMode::asymmetric;
}

Result<Converted> resize(Conversion& c, const Resize& op) {
  const auto size = c.ints(1);
  const auto* shape = c.shape(0);
  if (!size) return not_known("its size is not constant");
  if (shape == nullptr) return not_known("the shape of its input is not known");
  if (size->size() != 2 || shape->size() != 4)
    return refuse("it resizes something else than height and width of images");
  if ((*size)[0] < 1 || (*size)[1] < 1) return refuse("its size is not positive");
  const auto sizes = c.add_ints("sizes", {(*shape)[0], (*size)[0], (*size)[1], (*shape)[3]});
  return Converted{.op = op, .inputs = {c.input(0), kNoTensor, kNoTensor, sizes}};
}

Result<Converted> convert_pad(Conversion& c) { return pad(c, PadMode::constant); }

Result<Converted> convert_mirror_pad(Conversion& c) {
  const auto options = c.options("MirrorPadOptions");
  if (options && options.name("mode") != "REFLECT") return not_known("its mode is SYMMETRIC");
  return pad(c, PadMode::reflect);
}

Result<Converted> convert_resize_bilinear(Conversion& c) {
  return resize(c, {.mode = ResizeMode::linear,
                    .coordinates = coordinates(c.options("ResizeBilinearOptions"))});
}

Result<Converted> convert_resize_nearest_neighbor(Conversion& c) {
  const auto mode = coordinates(c.options("ResizeNearestNeighborOptions"));
  const bool floor = mode == CoordinateMode::asymmetric;
  return resize(c, {.mode = ResizeMode::nearest,
                    .coordinates = mode,
                    .nearest = floor ? NearestMode::floor : NearestMode::round_prefer_ceil});
}

// In the order of their enums.
constexpr std::array<std::string_view, 3> kPadModes = {"constant", "reflect", "edge"};
constexpr std::array<std::string_view, 3> kModes = {"nearest", "linear", "cubic"};
constexpr std::array<std::string_view, 4> kCoordinates = {"half_pixel", "pytorch_half_pixel",
                                                          "align_corners", "asymmetric"};
constexpr std::array<std::string_view, 4> kNearest = {"round_prefer_floor", "round_prefer_ceil",
                                                      "floor", "ceil"};

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Pad>({.number = 26,
                   .name = "Pad",
                   .arity = {2, 3},
                   .link = linked<&ChannelLinks::same_where_equal>,
                   .kernel_kind = "padding",
                   .onnx = {attribute<&Pad::mode>("mode").one_of(kPadModes, "padding of mode {}")},
                   .onnx_counts = {1}}),
    describe<Resize>(
        {.number = 27,
         .name = "Resize",
         .arity = {1, 4},
         .kernel_kind = "resize",
         .onnx = {attribute<&Resize::mode>("mode").one_of(kModes, "its mode is not supported"),
                  attribute<&Resize::coordinates>("coordinate_transformation_mode")
                      .one_of(kCoordinates, "its coordinate transformation is not supported"),
                  attribute<&Resize::nearest>("nearest_mode")
                      .one_of(kNearest, "its mode is not supported"),
                  attribute<&Resize::cubic_coefficient>("cubic_coeff_a")},
         .onnx_counts = {3}}),
});

constexpr auto kOnnx = std::to_array<OnnxReader>({{"Upsample", convert_upsample}});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"PAD", convert_pad, {2, 2}},
    {"PADV2", convert_pad, {3, 3}},
    {"MIRROR_PAD", convert_mirror_pad, {2, 2}},
    {"RESIZE_BILINEAR", convert_resize_bilinear, {2, 2}},
    {"RESIZE_NEAREST_NEIGHBOR", convert_resize_nearest_neighbor, {2, 2}},
});

}  // namespace

OperatorFamily resizing_family() {
  return {.operators = kOperators, .onnx = kOnnx, .tflite = kTflite};
}

}  // namespace fleetfit::graph
