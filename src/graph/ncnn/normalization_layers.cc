#include <fmt/format.h>

#include <array>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

std::int64_t channels(Conversion& c, int id) {
  if (!c.params().has(id)) c.fail(fmt::format("parameter {} (channels) is missing", id));
  return c.params().integer({.id = id, .name = "channels", .fallback = 1, .low = 1});
}

void batch_norm(Conversion& c) {
  const Shape shape{channels(c, 0)};
  const auto blob = c.blob(0);
  const auto y = c.add(BatchNorm{.epsilon = c.params().number(1, "eps", 0)},
                       {blob.tensor, c.filled("slope", shape, 1), c.filled("bias", shape, 0),
                        c.filled("mean", shape, 0), c.filled("variance", shape, 1)});
  output_like(c, y, blob);
}

void instance_norm(Conversion& c) {
  const auto blob = c.blob(0);
  const auto extents = c.extents(blob);
  const bool affine = c.params().flag(2, "affine", 1);
  const auto count = affine || extents.empty() ? channels(c, 0) : extents[0];
  const auto y = c.add(InstanceNorm{.epsilon = c.params().number(1, "eps", 1e-3F)},
                       {c.flat(blob), c.filled("gamma", {count}, 1), c.filled("beta", {count}, 0)});
  c.output(0, y);
}

void layer_norm(Conversion& c) {
  const auto blob = c.blob(0);
  const auto extents = c.extents(blob);
  const auto size = c.params().integer({.id = 0, .name = "affine_size"});
  const auto x = c.flat(blob);
  LayerNorm op{.axis = -1, .epsilon = c.params().number(1, "eps", 1e-3F)};
  Shape shape{size > 0 || extents.empty() ? size : extents.back()};
  // An image is normalized row by row or, if there is a weight for each position, channel by
  // channel.
  if (extents.size() == 3 && size != extents[2]) {
    if (size != extents[1] * extents[2])
      return c.fail(fmt::format("affine_size {} fits neither rows nor channels of {}", size,
                                to_string(extents)));
    op.axis = -2;
    shape = {extents[1], extents[2]};
  }
  c.output(0, c.add(op, {x, c.filled("gamma", shape, 1), c.filled("beta", shape, 0)}));
}

void scale(Conversion& c) {
  const auto size = c.params().integer({.id = 0, .name = "scale_data_size", .low = -233});
  const auto blob = c.blob(0);
  TensorId y = kNoTensor;
  if (size == -233) {
    const auto operands = broadcast(c, blob, c.blob(1));
    y = c.add(Elementwise{.kind = ElementwiseKind::mul}, {operands.a, operands.b});
    return c.output(0, y);
  }
  if (size < 1) return c.fail("parameter 0 (scale_data_size) is missing");
  const auto shape = size == 1 ? Shape{1} : per_channel(blob, size);
  y = c.add(Elementwise{.kind = ElementwiseKind::mul}, {blob.tensor, c.filled("scale", shape, 1)});
  if (c.params().flag(1, "bias_term"))
    y = c.add(Elementwise{.kind = ElementwiseKind::add}, {y, c.filled("bias", shape, 0)}, "add");
  output_like(c, y, blob);
}

void bias(Conversion& c) {
  const auto blob = c.blob(0);
  const auto shape = per_channel(blob, channels(c, 0));
  output_like(
      c,
      c.add(Elementwise{.kind = ElementwiseKind::add}, {blob.tensor, c.filled("bias", shape, 0)}),
      blob);
}

void lrn(Conversion& c) {
  auto& p = c.params();
  if (p.flag(0, "region_type"))
    return c.unknown("local response normalization within a channel is not supported");
  const Lrn op{.size = p.integer({.id = 1, .name = "local_size", .fallback = 5, .low = 1}),
               .alpha = p.number(2, "alpha", 1),
               .beta = p.number(3, "beta", 0.75F),
               .bias = p.number(4, "bias", 1)};
  const auto x = c.image(0);
  c.output(0, c.add(op, {x}));
}

constexpr std::array<LayerType, 6> kLayers = {{
    {"BatchNorm", batch_norm},
    {"InstanceNorm", instance_norm},
    {"LayerNorm", layer_norm},
    {"Scale", scale},
    {"Bias", bias},
    {"LRN", lrn},
}};

}  // namespace

Shape per_channel(const Blob& blob, std::int64_t count) {
  Shape shape{count};
  if (blob.one_by_one) return {count, 1, 1};
  for (int i = 1; i < blob.dims; ++i) shape.push_back(1);
  return shape;
}

std::span<const LayerType> normalization_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
