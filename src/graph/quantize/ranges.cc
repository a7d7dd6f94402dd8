#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fleetfit/graph/quantize.h"
#include "graph/is_one_of.h"

namespace fleetfit::graph {
namespace {

// --- Ranges that were seen ---

// The width of a bin is at most a 2048th of the largest magnitude.
constexpr std::size_t kBins = 8192;

/// The power of two above a finite number.
double power_above(double magnitude) {
  int exponent = 0;
  std::frexp(std::max(magnitude, static_cast<double>(std::numeric_limits<float>::min())),
             &exponent);
  return std::ldexp(1.0, exponent);
}

// --- Ranges that are made up ---

constexpr ValueRange kNeverNegative = {0, 1};
constexpr ValueRange kAny = {-1, 1};

/// Whether nothing negative comes out, whatever goes in. All activations leave what is not
/// negative so.
bool removes_negatives(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::relu:
    case ActivationKind::sigmoid:
    case ActivationKind::hard_sigmoid:
    case ActivationKind::softplus:
      return true;
    case ActivationKind::clip:
      return activation.alpha >= 0;
    default:
      return false;
  }
}

bool removes_negatives(const Node& node) {
  const auto* activate = std::get_if<Activate>(&node.op);
  return removes_negatives(node.activation) || std::holds_alternative<Softmax>(node.op) ||
         (activate != nullptr && removes_negatives(activate->function));
}

bool keeps_signs(ElementwiseKind kind) {
  return kind == ElementwiseKind::add || kind == ElementwiseKind::mul ||
         kind == ElementwiseKind::sum || kind == ElementwiseKind::mean ||
         kind == ElementwiseKind::max || kind == ElementwiseKind::min;
}

/// Whether nothing negative comes out if nothing negative goes in: means, maxima, and whatever
/// moves values.
bool keeps_signs(const Operator& op) {
  if (const auto* elementwise = std::get_if<Elementwise>(&op))
    return keeps_signs(elementwise->kind);
  return is_one_of<Activate, Pool, GlobalPool, Concat, Split, Slice, Pad, Resize, Transpose,
                   Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile, Stack, Unstack, DepthToSpace,
                   SpaceToDepth, ChannelShuffle, Identity, Dropout>(op);
}

}  // namespace

// Bins are halves of those of twice the reach, so that counts come out the same whatever came
// first.
void RangeCollector::Histogram::grow(double magnitude) {
  const double wanted = power_above(magnitude);
  if (bins.empty()) {
    bins.resize(kBins);
    reach = wanted;
  }
  for (; reach < wanted; reach *= 2) {
    std::vector<std::uint64_t> wider(kBins);
    for (std::size_t i = 0; i < kBins; ++i) wider[kBins / 4 + i / 2] += bins[i];
    bins = std::move(wider);
  }
}

void RangeCollector::Histogram::add(float value) {
  const double position = std::floor((value + reach) / (2 * reach) * static_cast<double>(kBins));
  ++bins[std::min(static_cast<std::size_t>(position), kBins - 1)];
}

void RangeCollector::observe(TensorId tensor, std::span<const float> values) {
  if (values.empty()) return;
  auto& seen = seen_[tensor];
  if (seen.count == 0) seen.extremes = {values[0], values[0]};
  for (const float value : values) {
    seen.all_finite = seen.all_finite && std::isfinite(value);
    seen.extremes.low = std::min(seen.extremes.low, value);
    seen.extremes.high = std::max(seen.extremes.high, value);
  }
  seen.count += values.size();
  if (options_.method == RangeMethod::min_max || !seen.all_finite) return;
  seen.histogram.grow(std::max(std::abs(static_cast<double>(seen.extremes.low)),
                               std::abs(static_cast<double>(seen.extremes.high))));
  for (const float value : values) seen.histogram.add(value);
}

ValueRange RangeCollector::common_values(const Seen& seen) const {
  const auto& [reach, bins] = seen.histogram;
  const double share = std::clamp((100 - options_.percentile) / 200, 0.0, 0.5);
  const auto cut = static_cast<std::uint64_t>(share * static_cast<double>(seen.count));
  std::size_t first = 0;
  for (std::uint64_t below = 0; first < kBins - 1 && below + bins[first] <= cut; ++first)
    below += bins[first];
  std::size_t end = kBins;
  for (std::uint64_t above = 0; end > first + 1 && above + bins[end - 1] <= cut; --end)
    above += bins[end - 1];
  const double width = 2 * reach / static_cast<double>(kBins);
  const auto low = static_cast<float>(static_cast<double>(first) * width - reach);
  const auto high = static_cast<float>(static_cast<double>(end) * width - reach);
  return {std::max(low, seen.extremes.low), std::min(high, seen.extremes.high)};
}

Ranges RangeCollector::ranges() const {
  Ranges result;
  for (const auto& [tensor, seen] : seen_) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    if (!seen.all_finite) {
      result[tensor] = {kNan, kNan};
    } else if (options_.method == RangeMethod::min_max) {
      result[tensor] = seen.extremes;
    } else {
      result[tensor] = common_values(seen);
    }
  }
  return result;
}

Ranges guessed_ranges(const Graph& prepared, const QuantizeOptions& options) {
  std::vector<bool> never_negative(prepared.tensors.size(), false);
  const auto is_fine = [&](TensorId id) {
    return id == kNoTensor || !is_float(prepared.tensor(id).dtype) ||
           never_negative[static_cast<std::size_t>(id)];
  };
  for (const Node& node : prepared.nodes) {
    const bool stays = keeps_signs(node.op) && std::ranges::all_of(node.inputs, is_fine);
    if (!stays && !removes_negatives(node)) continue;
    for (const TensorId id : node.outputs) never_negative[static_cast<std::size_t>(id)] = true;
  }
  Ranges ranges;
  for (const TensorId id : tensors_to_observe(prepared, options))
    ranges[id] = never_negative[static_cast<std::size_t>(id)] ? kNeverNegative : kAny;
  return ranges;
}

Result<Graph> quantized_for_costs(Graph graph) {
  if (is_quantized(graph)) return graph;
  FLEETFIT_ASSIGN(auto prepared, prepare_for_quantization(std::move(graph)));
  const auto ranges = guessed_ranges(prepared);
  // How many scales weights have changes no cost.
  return quantize(std::move(prepared), ranges, {.per_channel = false, .only_costs = true});
}

}  // namespace fleetfit::graph
