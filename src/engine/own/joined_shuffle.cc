// A channel shuffle of joined tensors whose result is cut again, as ShuffleNet's blocks end: the
// three in one pass over the pixels.
#include <algorithm>
#include <numeric>

#include "engine/own/own.h"
#include "fleetfit/core/vectorize.h"

namespace fleetfit::engine::own {
namespace {

/// Channels of one output that come from alternating inputs in order: channel 2 i + k is channel
/// first + i of input k.
struct Interleaved {
  std::int64_t first = 0;
  std::int64_t pairs = 0;
};

/// Where each channel of an output comes from.
struct Picked {
  std::size_t input = 0;
  std::int64_t channel = 0;
};

struct Channels {
  std::vector<std::int64_t> in;   ///< of each input
  std::vector<std::int64_t> out;  ///< of each output
  std::int64_t groups = 1;

  std::int64_t total() const { return std::accumulate(in.begin(), in.end(), std::int64_t{0}); }

  /// Channel `to` of all outputs in a row.
  Picked origin(std::int64_t to) const {
    const std::int64_t rest = total() / groups;
    std::int64_t from = to % groups * rest + to / groups;
    std::size_t input = 0;
    while (from >= in[input]) from -= in[input++];
    return {input, from};
  }
};

std::vector<std::vector<Picked>> origins(const Channels& channels) {
  std::vector<std::vector<Picked>> all;
  std::int64_t next = 0;
  for (const std::int64_t width : channels.out) {
    auto& picked = all.emplace_back();
    for (std::int64_t c = 0; c < width; ++c) picked.push_back(channels.origin(next++));
  }
  return all;
}

std::optional<Interleaved> as_interleaved(const std::vector<Picked>& picked) {
  const Interleaved result{picked[0].channel, static_cast<std::int64_t>(picked.size()) / 2};
  if (picked.size() % 2 != 0) return std::nullopt;
  for (std::size_t c = 0; c < picked.size(); ++c) {
    if (picked[c].input != c % 2 ||
        picked[c].channel != result.first + static_cast<std::int64_t>(c / 2)) {
      return std::nullopt;
    }
  }
  return result;
}

/// Pixels [begin, end) of one output that takes turns between two inputs.
template <class T>
FLEETFIT_INLINE void interleave(const T* a, const T* b, T* to, const Interleaved& part,
                                std::int64_t stride, std::int64_t begin, std::int64_t end) {
  for (std::int64_t pixel = begin; pixel < end; ++pixel) {
    const T* left = a + pixel * stride + part.first;
    const T* right = b + pixel * stride + part.first;
    T* out = to + pixel * 2 * part.pairs;
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < part.pairs; ++i) {
      out[2 * i] = left[i];
      out[2 * i + 1] = right[i];
    }
  }
}

FLEETFIT_VECTORIZE void interleave_bytes(const std::uint8_t* a, const std::uint8_t* b,
                                         std::uint8_t* to, const Interleaved& part,
                                         std::int64_t stride, std::int64_t begin,
                                         std::int64_t end) {
  interleave(a, b, to, part, stride, begin, end);
}

FLEETFIT_VECTORIZE void interleave_words(const std::uint32_t* a, const std::uint32_t* b,
                                         std::uint32_t* to, const Interleaved& part,
                                         std::int64_t stride, std::int64_t begin,
                                         std::int64_t end) {
  interleave(a, b, to, part, stride, begin, end);
}

KernelPtr make_interleaving(const Task& task, const Channels& channels,
                            std::vector<Interleaved> parts) {
  const std::int64_t pixels = graph::elements(task.inputs[0].shape) / channels.in[0];
  const bool bytes = graph::size_of(task.inputs[0].dtype) == 1;
  return function_kernel(
      task, "joined shuffle", [=, stride = channels.in[0]](const Memory& memory) {
        parallel(pixels, grain_of(channels.total()), [&](std::int64_t begin, std::int64_t end) {
          for (std::size_t o = 0; o < parts.size(); ++o) {
            if (bytes) {
              interleave_bytes(memory.in<std::uint8_t>(0), memory.in<std::uint8_t>(1),
                               memory.out<std::uint8_t>(o), parts[o], stride, begin, end);
            } else {
              interleave_words(memory.in<std::uint32_t>(0), memory.in<std::uint32_t>(1),
                               memory.out<std::uint32_t>(o), parts[o], stride, begin, end);
            }
          }
        });
      });
}

template <class T>
KernelPtr make_picking(const Task& task, const Channels& channels) {
  const std::int64_t pixels = graph::elements(task.inputs[0].shape) / channels.in[0];
  return function_kernel(
      task, "joined shuffle", [=, from = origins(channels)](const Memory& memory) {
        parallel_each(pixels, channels.total(), [&](std::int64_t pixel) {
          for (std::size_t o = 0; o < from.size(); ++o) {
            T* out = memory.out<T>(o) + pixel * channels.out[o];
            for (const Picked& picked : from[o]) {
              *out++ =
                  memory.in<T>(picked.input)[pixel * channels.in[picked.input] + picked.channel];
            }
          }
        });
      });
}

}  // namespace

KernelPtr make_joined_shuffle(const Task& task, const graph::ChannelShuffle& op) {
  if (op.layout != graph::Layout::nhwc) return nullptr;
  Channels channels{.groups = op.groups};
  for (const Operand& input : task.inputs) channels.in.push_back(input.shape.back());
  for (const Operand& output : task.outputs) channels.out.push_back(output.shape.back());
  std::vector<Interleaved> parts;
  for (const auto& picked : origins(channels)) {
    if (const auto part = as_interleaved(picked)) parts.push_back(*part);
  }
  const std::size_t bytes = graph::size_of(task.inputs[0].dtype);
  const bool even = channels.in.size() == 2 && channels.in[0] == channels.in[1];
  if (even && parts.size() == channels.out.size() && (bytes == 1 || bytes == 4)) {
    return make_interleaving(task, channels, parts);
  }
  return with_word(bytes, [&]<class T>(T) { return make_picking<T>(task, channels); });
}

}  // namespace fleetfit::engine::own
