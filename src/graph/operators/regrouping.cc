#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace tflite;

struct Image {
  std::size_t channels = 1;
  std::size_t height = 2;
  std::size_t width = 3;
};

Image image_axes(Layout layout) { return layout == Layout::nchw ? Image{1, 2, 3} : Image{3, 1, 2}; }

Status check_block(const Shape& x, std::int64_t block) {
  if (x.size() != 4) return misfit("{} is no image", to_string(x));
  if (block < 1 || block > (1 << 20)) return misfit("a block of {}", block);
  return {};
}

Result<Shape> shape_of(const DepthToSpace& op, Shape shape) {
  FLEETFIT_TRY(check_block(shape, op.block));
  const auto at = image_axes(op.layout);
  if (shape[at.channels] % (op.block * op.block) != 0) {
    return misfit("{} channels do not divide into blocks of {}", shape[at.channels],
                  op.block * op.block);
  }
  shape[at.channels] /= op.block * op.block;
  shape[at.height] *= op.block;
  shape[at.width] *= op.block;
  return shape;
}

Result<Shape> shape_of(const SpaceToDepth& op, Shape shape) {
  FLEETFIT_TRY(check_block(shape, op.block));
  const auto at = image_axes(op.layout);
  if (shape[at.height] % op.block != 0 || shape[at.width] % op.block != 0) {
    return misfit("{} does not divide into blocks of {}", to_string(shape), op.block);
  }
  if (shape[at.channels] > (std::int64_t{1} << 22))
    return misfit("{} is absurdly large", to_string(shape));
  shape[at.channels] *= op.block * op.block;
  shape[at.height] /= op.block;
  shape[at.width] /= op.block;
  return shape;
}

/// Checks block and pads (or crops) of SpaceToBatch and BatchToSpace; gives the product of the
/// block.
Result<std::int64_t> check_blocks(const Shape& x, const Ints& block, const Ints& margins) {
  if (x.size() < block.size() + 1 || margins.size() != 2 * block.size()) {
    return misfit("{} blocks and {} margins for {}", block.size(), margins.size(), to_string(x));
  }
  const auto sane = [](std::int64_t v) { return v >= 0 && v <= (std::int64_t{1} << 30); };
  if (!std::all_of(margins.begin(), margins.end(), sane))
    return misfit("margins {}", to_string(margins));
  if (!std::all_of(block.begin(), block.end(), [&](std::int64_t b) { return b > 0 && sane(b); })) {
    return misfit("blocks {}", to_string(block));
  }
  return element_count(block);
}

Outcomes infer(const SpaceToBatch&, const Operands& in) {
  const auto block = in.ints(1);
  const auto pads = in.ints(2);
  if (in.shape(0) == nullptr || !block || !pads) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  FLEETFIT_ASSIGN(const auto blocks, check_blocks(shape, *block, *pads));
  for (std::size_t i = 0; i < block->size(); ++i) {
    const auto padded = shape[i + 1] + (*pads)[2 * i] + (*pads)[2 * i + 1];
    if (padded % (*block)[i] != 0)
      return misfit("{} elements do not divide into blocks of {}", padded, (*block)[i]);
    shape[i + 1] = padded / (*block)[i];
  }
  if (__builtin_mul_overflow(shape[0], blocks, shape.data()))
    return misfit("blocks {}", to_string(*block));
  return one(in.dtype(0), shape);
}

Outcomes infer(const BatchToSpace&, const Operands& in) {
  const auto block = in.ints(1);
  const auto crops = in.ints(2);
  if (in.shape(0) == nullptr || !block || !crops) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  FLEETFIT_ASSIGN(const auto blocks, check_blocks(shape, *block, *crops));
  if (shape[0] % blocks != 0)
    return misfit("a batch of {} does not divide into blocks {}", shape[0], to_string(*block));
  shape[0] /= blocks;
  for (std::size_t i = 0; i < block->size(); ++i) {
    if (__builtin_mul_overflow(shape[i + 1], (*block)[i], &shape[i + 1]))
      return misfit("blocks {}", to_string(*block));
    shape[i + 1] -= (*crops)[2 * i] + (*crops)[2 * i + 1];
    if (shape[i + 1] < 0) return misfit("crops leave nothing of dimension {}", i + 1);
  }
  return one(in.dtype(0), shape);
}

Result<Shape> shape_of(const ChannelShuffle& op, const Shape& x) {
  if (x.size() < 2) return misfit("{} has no channels", to_string(x));
  const auto channels = op.layout == Layout::nchw ? x[1] : x.back();
  if (op.groups < 1 || channels % op.groups != 0)
    return misfit("{} channels do not divide into {} groups", channels, op.groups);
  return x;
}

void link(const ChannelShuffle& op, ChannelLinks& links) {
  const std::size_t axis = links.channel_axis_of(links.in(0), op.layout);
  links.same_but(links.in(0), links.out(), axis);
  const int groups = static_cast<int>(op.groups);
  const int each = links.extent(links.out(), axis) / groups;
  links.repeat(links.in(0), axis, groups);
  for (int g = 0; g < groups; ++g) {
    for (int i = 0; i < each; ++i)
      links.unite(links.in(0), axis, g * each + i, links.out(), axis, i * groups + g);
  }
}

/// reshape, transpose, reshape: the way of all operators that regroup elements.
Value regrouped(const Value& x, const Shape& split, const Ints& perm, const Shape& result) {
  return reshaped(permuted(reshaped(x, split), perm), result);
}

/// A regrouping of an image with channels in second place, for either layout.
Values regroup_image(const Call& call, Layout layout, const Shape& split, const Ints& perm) {
  const auto x = to_channels_first(call.input(0), layout);
  const auto shape = to_channels_first(call.result().shape, layout);
  return one(from_channels_first(regrouped(x, split, perm, shape), layout));
}

Values run(const DepthToSpace& op, const Call& call) {
  const auto x = to_channels_first(call.input(0).shape, op.layout);
  const auto b = op.block;
  const auto channels = x[1] / (b * b);
  if (op.column_row_depth) {
    return regroup_image(call, op.layout, {x[0], channels, b, b, x[2], x[3]}, {0, 1, 4, 2, 5, 3});
  }
  return regroup_image(call, op.layout, {x[0], b, b, channels, x[2], x[3]}, {0, 3, 4, 1, 5, 2});
}

Values run(const SpaceToDepth& op, const Call& call) {
  const auto x = to_channels_first(call.input(0).shape, op.layout);
  const auto b = op.block;
  return regroup_image(call, op.layout, {x[0], x[1], x[2] / b, b, x[3] / b, b}, {0, 3, 5, 1, 2, 4});
}

Values run(const SpaceToBatch&, const Call& call) {
  const auto block = read<std::int64_t>(call.input(1));
  const auto margins = read<std::int64_t>(call.input(2));
  const auto spatial = std::ssize(block);
  const auto& x = call.input(0);
  Ints pads(x.shape.size(), 0);
  Shape padded_shape = x.shape;
  for (std::int64_t i = 0; i < spatial; ++i) {
    pads[i + 1] = margins[2 * i];
    padded_shape[i + 1] += margins[2 * i] + margins[2 * i + 1];
  }
  FLEETFIT_ASSIGN(auto indices, padded(PadMode::constant, pads, x.shape, padded_shape));

  // batch, (rows, block) for each spatial dimension, rest -> blocks, batch, rows, rest
  Shape split{x.shape[0]};
  Ints perm;
  for (std::int64_t i = 0; i < spatial; ++i) {
    split.push_back(padded_shape[i + 1] / block[i]);
    split.push_back(block[i]);
    perm.push_back(2 * i + 2);
  }
  perm.push_back(0);
  for (std::int64_t i = 0; i < spatial; ++i) perm.push_back(2 * i + 1);
  split.push_back(elements(Shape(x.shape.begin() + spatial + 1, x.shape.end())));
  perm.push_back(2 * spatial + 1);
  return one(regrouped(pick(x, std::move(indices)), split, perm, call.result().shape));
}

Values run(const BatchToSpace&, const Call& call) {
  const auto block = read<std::int64_t>(call.input(1));
  const auto crops = read<std::int64_t>(call.input(2));
  const auto spatial = std::ssize(block);
  const auto& x = call.input(0);
  const auto batch = x.shape[0] / elements(block);

  // blocks, batch, rows, rest -> batch, (rows, block) for each spatial dimension, rest
  Shape split = block;
  Shape uncropped{batch};
  Ints perm{spatial};
  split.push_back(batch);
  for (std::int64_t i = 0; i < spatial; ++i) {
    split.push_back(x.shape[i + 1]);
    uncropped.push_back(x.shape[i + 1] * block[i]);
    perm.push_back(spatial + 1 + i);
    perm.push_back(i);
  }
  split.push_back(elements(Shape(x.shape.begin() + spatial + 1, x.shape.end())));
  perm.push_back(2 * spatial + 1);
  uncropped.insert(uncropped.end(), x.shape.begin() + spatial + 1, x.shape.end());

  auto indices = everything(call.result().shape);
  for (std::int64_t i = 0; i < spatial; ++i) {
    for (auto& index : indices[i + 1]) index += crops[2 * i];
  }
  return one(pick(regrouped(x, split, perm, uncropped), std::move(indices)));
}

Values run(const ChannelShuffle& op, const Call& call) {
  const auto x = to_channels_first(call.input(0).shape, op.layout);
  const auto rest = elements(Shape(x.begin() + 2, x.end()));
  return regroup_image(call, op.layout, {x[0], op.groups, x[1] / op.groups, rest}, {0, 2, 1, 3});
}

Status lower_onnx(const ChannelShuffle& op, Node& node, Lowering& out) {
  const auto shape = out.tensor(node.inputs[0]).shape;
  if (!shape || shape->size() != 4)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: only images are shuffled", describe(node)));
  const Shape& x = *shape;
  const auto apart =
      out.step(node, "groups", Reshape{},
               {node.inputs[0],
                out.ints(node, "groups_shape", {0, op.groups, x[1] / op.groups, x[2], x[3]})});
  const auto swapped = out.step(node, "swapped", Transpose{{0, 2, 1, 3, 4}}, {apart});
  out.emit(node, "joined", Reshape{},
           {swapped, out.ints(node, "joined_shape", {0, x[1], x[2], x[3]})}, node.outputs[0]);
  return {};
}

template <class Op>
Result<Converted> convert_blocks(Conversion& c, std::string_view type) {
  const auto options = c.options(type);
  if (!options || options.integer("block_size") < 1) return refuse("its block is not positive");
  return Converted{.op = Op{.block = options.integer("block_size"), .layout = Layout::nhwc},
                   .inputs = c.inputs};
}

Result<Converted> convert_space_to_depth(Conversion& c) {
  return convert_blocks<SpaceToDepth>(c, "SpaceToDepthOptions");
}

Result<Converted> convert_depth_to_space(Conversion& c) {
  return convert_blocks<DepthToSpace>(c, "DepthToSpaceOptions");
}

constexpr std::array<std::string_view, 2> kBlockModes = {"DCR", "CRD"};

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<DepthToSpace>(
        {.number = 38,
         .name = "DepthToSpace",
         .only_moves = true,
         .kernel_kind = "transpose",
         .onnx = {attribute<&DepthToSpace::block>("blocksize").or_else(0),
                  attribute<&DepthToSpace::column_row_depth>("mode").one_of(kBlockModes)}}),
    describe<SpaceToDepth>({.number = 39,
                            .name = "SpaceToDepth",
                            .only_moves = true,
                            .kernel_kind = "transpose",
                            .onnx = {attribute<&SpaceToDepth::block>("blocksize").or_else(0)}}),
    describe<SpaceToBatch>({.number = 40,
                            .name = "SpaceToBatch",
                            .arity = {3, 3},
                            .only_nhwc = true,
                            .quantized = quantization::Role::moves,
                            .kernel_kind = "transpose",
                            .outside_onnx = true}),
    describe<BatchToSpace>({.number = 41,
                            .name = "BatchToSpace",
                            .arity = {3, 3},
                            .only_moves = true,
                            .only_nhwc = true,
                            .kernel_kind = "transpose",
                            .outside_onnx = true}),
    describe<ChannelShuffle>({.number = 42,
                              .name = "ChannelShuffle",
                              .only_moves = true,
                              .kernel_kind = "transpose",
                              .outside_onnx = true}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"SPACE_TO_DEPTH", convert_space_to_depth},
    {"DEPTH_TO_SPACE", convert_depth_to_space},
    {"SPACE_TO_BATCH_ND", convert_plain<SpaceToBatch>, {3, 3}},
    {"BATCH_TO_SPACE_ND", convert_plain<BatchToSpace>, {3, 3}},
});

}  // namespace

OperatorFamily regrouping_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
