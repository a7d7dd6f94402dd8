#include <span>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Block {
  std::int64_t out;
  std::int64_t stride;
  std::int64_t expand;         ///< times the input's channels
  std::int64_t expand_parts;   ///< groups of channels with convolutions of their own
  std::int64_t kernels;        ///< depthwise kernels of 3, 5, 7, … side by side
  std::int64_t project_parts;  ///< as expand_parts
  std::int64_t squeeze;        ///< divides the input's channels; 0: no squeeze-excite
};

constexpr Block kSmall[] = {
    {24, 2, 6, 2, 1, 2, 0},  {24, 1, 3, 2, 1, 2, 0},  {40, 2, 6, 1, 3, 1, 2},
    {40, 1, 6, 2, 2, 2, 2},  {40, 1, 6, 2, 2, 2, 2},  {40, 1, 6, 2, 2, 2, 2},
    {80, 2, 6, 1, 3, 2, 4},  {80, 1, 6, 1, 2, 2, 4},  {80, 1, 6, 1, 2, 2, 4},
    {120, 1, 6, 2, 3, 2, 2}, {120, 1, 3, 2, 4, 2, 2}, {120, 1, 3, 2, 4, 2, 2},
    {200, 2, 6, 1, 5, 1, 2}, {200, 1, 6, 1, 4, 2, 2}, {200, 1, 6, 1, 4, 2, 2},
};

constexpr Block kMedium[] = {
    {32, 2, 6, 2, 3, 2, 0},  {32, 1, 3, 2, 1, 2, 0},  {40, 2, 6, 1, 4, 1, 2},
    {40, 1, 6, 2, 2, 2, 2},  {40, 1, 6, 2, 2, 2, 2},  {40, 1, 6, 2, 2, 2, 2},
    {80, 2, 6, 1, 3, 1, 4},  {80, 1, 6, 2, 4, 2, 4},  {80, 1, 6, 2, 4, 2, 4},
    {80, 1, 6, 2, 4, 2, 4},  {120, 1, 6, 1, 1, 1, 2}, {120, 1, 3, 2, 4, 2, 2},
    {120, 1, 3, 2, 4, 2, 2}, {120, 1, 3, 2, 4, 2, 2}, {200, 2, 6, 1, 4, 1, 2},
    {200, 1, 6, 1, 4, 2, 2}, {200, 1, 6, 1, 4, 2, 2}, {200, 1, 6, 1, 4, 2, 2},
};

struct Network {
  const char* name;
  std::span<const Block> blocks;
  std::int64_t stem;
  double width;
};

constexpr Network kNetworks[] = {
    {"mixnet_s", kSmall, 16, 1}, {"mixnet_m", kMedium, 24, 1}, {"mixnet_l", kMedium, 24, 1.3}};

/// Equal parts, the first of which takes what is left over.
Ints parts_of(std::int64_t channels, std::int64_t parts) {
  Ints sizes(static_cast<std::size_t>(parts), channels / parts);
  sizes[0] += channels % parts;
  return sizes;
}

/// A convolution for each part of the channels, with batch norm over all of them. `convolve` gets
/// the input's part, the number of its output channels and its index.
template <class Convolve>
TensorId in_parts(NetBuilder& net, TensorId x, const Ints& in, const Ints& out, Convolve convolve) {
  if (in.size() == 1) return net.batch_norm(convolve(x, out[0], 0));
  std::vector<TensorId> made = net.split(x, in);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = convolve(made[i], out[i], static_cast<std::int64_t>(i));
  }
  return net.batch_norm(net.concat(made));
}

TensorId pointwise(NetBuilder& net, TensorId x, std::int64_t out, std::int64_t parts) {
  return in_parts(net, x, parts_of(net.channels(x), parts), parts_of(out, parts),
                  [&](TensorId part, std::int64_t channels, std::int64_t) {
                    return net.conv(part, {.out = channels});
                  });
}

TensorId mixed_depthwise(NetBuilder& net, TensorId x, std::int64_t kernels, std::int64_t stride) {
  const Ints sizes = parts_of(net.channels(x), kernels);
  return in_parts(
      net, x, sizes, sizes, [&](TensorId part, std::int64_t channels, std::int64_t index) {
        return net.conv(
            part, {.out = channels, .kernel = 3 + 2 * index, .stride = stride, .groups = channels});
      });
}

TensorId block(NetBuilder& net, TensorId x, const Block& spec, const Activation& activation) {
  const std::int64_t in = net.channels(x);
  TensorId y = x;
  if (spec.expand > 1) {
    y = net.activate(pointwise(net, y, spec.expand * in, spec.expand_parts), activation);
  }
  y = net.activate(mixed_depthwise(net, y, spec.kernels, spec.stride), activation);
  const std::int64_t reduced = spec.squeeze == 0 ? 0 : in / spec.squeeze;
  y = squeeze_excite(net, y, {.reduced = reduced, .inner = activation});
  y = pointwise(net, y, spec.out, spec.project_parts);
  return spec.stride == 1 && in == spec.out ? net.add(y, x) : y;
}

TensorId mixnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const double width = row.width * options.width;
  const std::int64_t stem = scaled_channels(row.stem, width);
  x = net.conv_bn(x, {.out = stem, .kernel = 3, .stride = 2}, kRelu);
  x = block(net, x, {stem, 1, 1, 1, 1, 1, 0}, kRelu);
  for (std::size_t i = 0; i < row.blocks.size(); ++i) {
    Block spec = row.blocks[i];
    spec.out = scaled_channels(spec.out, width);
    x = block(net, x, spec, i < 2 ? kRelu : kSilu);
  }
  x = net.conv_bn(x, {.out = 1536}, kRelu);
  return classify(net, x, options.classes);
}

}  // namespace

void add_mixnet(ZooList& zoo) { add_rows(zoo, {.family = "mixnet"}, kNetworks, mixnet); }

}  // namespace fleetfit::graph
