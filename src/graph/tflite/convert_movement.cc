// Operators that move elements without computing on them.

#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/tflite/conversion.h"

namespace fleetfit::graph::tflite {
namespace {

constexpr auto kToTheEnd = std::numeric_limits<std::int64_t>::max();
constexpr auto kToTheStart = std::numeric_limits<std::int64_t>::min();

bool has_bit(std::int32_t mask, std::size_t i) {
  return (static_cast<std::uint32_t>(mask) >> i & 1U) != 0;
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

template <class Options>
CoordinateMode coordinates(const Options* options) {
  if (options != nullptr && options->align_corners()) return CoordinateMode::align_corners;
  if (options != nullptr && options->half_pixel_centers()) return CoordinateMode::half_pixel;
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

/// The sizes of the parts of a dimension, one of which may be -1: the rest.
std::optional<Ints> with_rest(Ints sizes, std::int64_t extent) {
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open == sizes.end()) return sizes;
  *open = 0;
  std::int64_t sum = 0;
  for (const auto size : sizes) {
    if (size < 0 || size > extent) return std::nullopt;
    sum += size;
  }
  if (sum > extent) return std::nullopt;
  *open = extent - sum;
  return sizes;
}

}  // namespace

Result<Converted> convert_concatenation(Conversion& c) {
  const auto* options = c.options<file::ConcatenationOptions>();
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  return Converted{.op = Concat{options == nullptr ? 0 : options->axis()},
                   .inputs = c.inputs,
                   .activation = *activation};
}

Result<Converted> convert_split(Conversion& c) {
  const auto axis = c.integer(0);
  if (!axis) return not_known("its axis is not constant");
  return Converted{.op = Split{*axis}, .inputs = {c.input(1)}};
}

Result<Converted> convert_split_v(Conversion& c) {
  const auto axis = c.integer(2);
  auto sizes = c.ints(1);
  if (!axis || !sizes) return not_known("its axis or sizes are not constant");
  if (std::find(sizes->begin(), sizes->end(), -1) != sizes->end()) {
    const auto* shape = c.shape(0);
    if (shape == nullptr) return not_known("the shape of its input is not known");
    const auto rank = static_cast<std::int64_t>(shape->size());
    const auto positive = *axis < 0 ? *axis + rank : *axis;
    if (positive < 0 || positive >= rank) return refuse(fmt::format("it has no axis {}", *axis));
    sizes = with_rest(*sizes, (*shape)[static_cast<std::size_t>(positive)]);
    if (!sizes) return refuse("its sizes do not fit its input");
  }
  return Converted{.op = Split{*axis}, .inputs = {c.input(0), c.add_ints("sizes", *sizes)}};
}

Result<Converted> convert_slice(Conversion& c) {
  const auto begin = c.ints(1);
  const auto size = c.ints(2);
  if (!begin || !size) return not_known("its begin or size is not constant");
  if (begin->size() != size->size()) return refuse("its begin and size differ in length");
  Ints ends;
  for (std::size_t i = 0; i < begin->size(); ++i) {
    std::int64_t end = 0;
    if ((*begin)[i] < 0 || (*size)[i] < -1 || __builtin_add_overflow((*begin)[i], (*size)[i], &end))
      return refuse("its begin or size is out of range");
    ends.push_back((*size)[i] == -1 ? kToTheEnd : end);
  }
  return Converted{.op = Slice{},
                   .inputs = {c.input(0), c.add_ints("starts", *begin), c.add_ints("ends", ends)}};
}

Result<Converted> convert_strided_slice(Conversion& c) {
  const auto* options = c.options<file::StridedSliceOptions>();
  if (options == nullptr) return refuse("it has no options");
  if (options->ellipsis_mask() != 0) return not_known("it has an ellipsis mask");
  if (options->new_axis_mask() != 0) return not_known("it has a mask of new axes");
  auto starts = c.ints(1);
  auto ends = c.ints(2);
  const auto steps = c.ints(3);
  if (!starts || !ends || !steps) return not_known("its begin, end or strides are not constant");
  if (starts->size() != ends->size() || starts->size() != steps->size() || starts->size() > 16)
    return refuse("its begin, end and strides do not fit each other");

  Slice slice;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    const bool forward = (*steps)[i] > 0;
    auto& start = (*starts)[i];
    auto& end = (*ends)[i];
    if ((*steps)[i] == 0) return refuse("one of its strides is 0");
    if (options->offset() && __builtin_add_overflow(start, end, &end))
      return refuse("its end is out of range");
    if (has_bit(options->shrink_axis_mask(), i)) {
      if (!forward) return refuse("it drops an axis that it goes through backwards");
      if (has_bit(options->begin_mask(), i)) start = 0;
      if (start == kToTheEnd) return refuse("its begin is out of range");
      end = start == -1 ? kToTheEnd : start + 1;
      slice.squeezed.push_back(static_cast<std::int64_t>(i));
      continue;
    }
    if (has_bit(options->begin_mask(), i)) start = forward ? 0 : kToTheEnd;
    if (has_bit(options->end_mask(), i)) end = forward ? kToTheEnd : kToTheStart;
  }
  Ints axes(steps->size());
  std::iota(axes.begin(), axes.end(), 0);
  return Converted{.op = std::move(slice),
                   .inputs = {c.input(0), c.add_ints("starts", *starts), c.add_ints("ends", *ends),
                              c.add_ints("axes", axes), c.add_ints("steps", *steps)}};
}

Result<Converted> convert_pad(Conversion& c) { return pad(c, PadMode::constant); }

Result<Converted> convert_mirror_pad(Conversion& c) {
  const auto* options = c.options<file::MirrorPadOptions>();
  if (options != nullptr && options->mode() != file::MirrorPadMode::REFLECT)
    return not_known("its mode is SYMMETRIC");
  return pad(c, PadMode::reflect);
}

Result<Converted> convert_resize_bilinear(Conversion& c) {
  return resize(c, {.mode = ResizeMode::linear,
                    .coordinates = coordinates(c.options<file::ResizeBilinearOptions>())});
}

Result<Converted> convert_resize_nearest_neighbor(Conversion& c) {
  const auto mode = coordinates(c.options<file::ResizeNearestNeighborOptions>());
  const bool floor = mode == CoordinateMode::asymmetric;
  return resize(c, {.mode = ResizeMode::nearest,
                    .coordinates = mode,
                    .nearest = floor ? NearestMode::floor : NearestMode::round_prefer_ceil});
}

Result<Converted> convert_reshape(Conversion& c) {
  const auto* shape = c.shape(1);
  const bool has_input = c.input(1) != kNoTensor && (shape == nullptr || shape->size() == 1);
  if (has_input) {
    return Converted{.op = Reshape{.allow_zero = true}, .inputs = {c.input(0), c.input(1)}};
  }
  const auto* options = c.options<file::ReshapeOptions>();
  if (options == nullptr || options->new_shape() == nullptr)
    return not_known("its new shape is not known");
  const auto* given = options->new_shape();
  if (given->size() > 16) return refuse("its new shape has too many dimensions");
  Ints values(given->begin(), given->end());
  if (values == Ints{0}) values.clear();  // how old files write a scalar
  return Converted{.op = Reshape{.allow_zero = true},
                   .inputs = {c.input(0), c.add_ints("shape", values)}};
}

Result<Converted> convert_squeeze(Conversion& c) {
  const auto* options = c.options<file::SqueezeOptions>();
  const auto* axes = options == nullptr ? nullptr : options->squeeze_dims();
  if (axes == nullptr || axes->size() == 0)
    return Converted{.op = Squeeze{}, .inputs = {c.input(0)}};
  if (axes->size() > 16) return refuse("it has too many axes");
  return Converted{.op = Squeeze{},
                   .inputs = {c.input(0), c.add_ints("axes", Ints(axes->begin(), axes->end()))}};
}

Result<Converted> convert_expand_dims(Conversion& c) {
  const auto axis = c.integer(1);
  if (!axis) return not_known("its axis is not constant");
  return Converted{.op = Unsqueeze{}, .inputs = {c.input(0), c.add_ints("axes", {*axis})}};
}

Result<Converted> convert_transpose(Conversion& c) {
  auto perm = c.ints(1);
  if (!perm) return not_known("its permutation is not constant");
  return Converted{.op = Transpose{std::move(*perm)}, .inputs = {c.input(0)}};
}

Result<Converted> convert_tile(Conversion& c) {
  return Converted{.op = Tile{}, .inputs = c.inputs};
}

Result<Converted> convert_broadcast_to(Conversion& c) {
  return Converted{.op = Expand{}, .inputs = c.inputs};
}

Result<Converted> convert_gather(Conversion& c) {
  const auto* options = c.options<file::GatherOptions>();
  if (options != nullptr && options->batch_dims() != 0) return not_known("it gathers per batch");
  return Converted{.op = Gather{options == nullptr ? 0 : options->axis()}, .inputs = c.inputs};
}

Result<Converted> convert_pack(Conversion& c) {
  const auto* options = c.options<file::PackOptions>();
  return Converted{.op = Stack{options == nullptr ? 0 : options->axis()}, .inputs = c.inputs};
}

Result<Converted> convert_unpack(Conversion& c) {
  const auto* options = c.options<file::UnpackOptions>();
  return Converted{.op = Unstack{options == nullptr ? 0 : options->axis()}, .inputs = c.inputs};
}

Result<Converted> convert_space_to_depth(Conversion& c) {
  const auto* options = c.options<file::SpaceToDepthOptions>();
  if (options == nullptr || options->block_size() < 1) return refuse("its block is not positive");
  return Converted{.op = SpaceToDepth{.block = options->block_size(), .layout = Layout::nhwc},
                   .inputs = c.inputs};
}

Result<Converted> convert_depth_to_space(Conversion& c) {
  const auto* options = c.options<file::DepthToSpaceOptions>();
  if (options == nullptr || options->block_size() < 1) return refuse("its block is not positive");
  return Converted{.op = DepthToSpace{.block = options->block_size(), .layout = Layout::nhwc},
                   .inputs = c.inputs};
}

Result<Converted> convert_space_to_batch_nd(Conversion& c) {
  return Converted{.op = SpaceToBatch{}, .inputs = c.inputs};
}

Result<Converted> convert_batch_to_space_nd(Conversion& c) {
  return Converted{.op = BatchToSpace{}, .inputs = c.inputs};
}

}  // namespace fleetfit::graph::tflite
