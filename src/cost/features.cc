#include "fleetfit/cost/features.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "cost/kernel_measures.h"

namespace fleetfit::cost {
namespace {

using M = KernelMeasures;

struct Feature {
  std::string_view name;
  double (*value)(const M&);
};

double rounded_up(double value, double to) { return std::ceil(value / to) * to; }

// Vector units work on so many channels at once; what is left over costs as much as a full one.
constexpr double kLanes = 16;
constexpr double kLevel1Bytes = 32.0 * 1024;
constexpr double kLevel2Bytes = 1024.0 * 1024;
constexpr double kWinogradTile = 4;
constexpr double kWinogradProducts = 36;

double total_bytes(const M& m) { return m.input_bytes + m.output_bytes + m.weight_bytes; }
double beyond(double bytes, double cache) { return std::max(0.0, bytes - cache); }
double output_pixels(const M& m) { return m.out.batch * m.out.height * m.out.width; }
double taps(const M& m) { return m.window.height * m.window.width; }
double patch_size(const M& m) { return output_pixels(m) * taps(m) * m.in.channels; }

/// Floating-point operations if all channels are filled up to whole vectors.
double padded_flops(const M& m) {
  const double in = rounded_up(m.in.channels / m.groups, kLanes);
  const double out = rounded_up(m.out.channels / m.groups, kLanes);
  const bool depthwise = m.in.channels == m.groups;
  const double products = depthwise ? rounded_up(m.out.channels, kLanes) : m.groups * in * out;
  return 2 * output_pixels(m) * taps(m) * products;
}

/// Vectors of filters that are computed for each pixel. Kernels that take their inputs one by one
/// fill up filters alone, those of each group by themselves.
double filter_vectors(const M& m) {
  return m.groups * std::ceil(m.out.channels / m.groups / kLanes);
}
double filled_taps(const M& m) { return output_pixels(m) * taps(m) * filter_vectors(m); }
double filled_flops(const M& m) { return 2 * kLanes * filled_taps(m) * m.in.channels / m.groups; }

bool divides(double part, double channels) { return std::fmod(channels, part) == 0; }

/// Whether the channels of each group come in whole vectors, as layouts in blocks of channels want.
bool is_blocked(const M& m) {
  if (m.in.channels == m.groups) return divides(kLanes, m.out.channels);
  return divides(kLanes, m.in.channels / m.groups) && divides(kLanes, m.out.channels / m.groups);
}

/// ONNX Runtime's blocks of channels are made of fours; it has much slower kernels for the rest.
bool is_in_fours(const M& m) { return divides(4, m.in.channels); }

/// Kernels for windows of bytes are slower where the border of an image is not 0 as stored.
double shifted_flops(const M& m) { return m.shifted && taps(m) > 1 ? m.flops : 0; }

/// How many groups the engine joins to one for oneDNN's kernels for bytes
/// (src/engine/onednn/convolution.cc), with zeros between them: the fewest with which inputs and
/// filters come in fours or, if 0 is stored as 0, inputs fill more than a vector. 0 where too many
/// would be needed: matrices are multiplied then, group by group.
double joined_groups(const M& m) {
  constexpr double kMostJoined = 16;
  for (double joined = 1; joined <= std::min(m.groups, kMostJoined); ++joined) {
    if (!divides(joined, m.groups)) continue;
    const double in = joined * m.in.channels / m.groups;
    const double out = joined * m.out.channels / m.groups;
    const bool in_fours = divides(4, in) && divides(4, out);
    if (in_fours || joined == m.groups || (!m.shifted && in > kLanes)) return joined;
  }
  return 0;
}

/// Operations by Winograd's algorithm where it can be used, else all of them.
double winograd_flops(const M& m) {
  const bool usable = m.groups == 1 && m.window.height == 3 && m.window.width == 3 &&
                      m.window.stride == 1 && m.window.dilation == 1;
  if (!usable) return m.flops;
  const double tiles = m.out.batch * std::ceil(m.out.height / kWinogradTile) *
                       std::ceil(m.out.width / kWinogradTile);
  return 2 * kWinogradProducts * tiles * m.in.channels * m.out.channels;
}

constexpr std::array kGeneric{
    Feature{"flops", [](const M& m) { return m.flops; }},
    Feature{"input_size", [](const M& m) { return m.input_size; }},
    Feature{"output_size", [](const M& m) { return m.output_size; }},
    Feature{"weight_size", [](const M& m) { return m.weight_size; }},
    Feature{"input_bytes", [](const M& m) { return m.input_bytes; }},
    Feature{"output_bytes", [](const M& m) { return m.output_bytes; }},
    Feature{"weight_bytes", [](const M& m) { return m.weight_bytes; }},
    Feature{"total_bytes", [](const M& m) { return total_bytes(m); }},
    Feature{"bytes_beyond_level1", [](const M& m) { return beyond(total_bytes(m), kLevel1Bytes); }},
    Feature{"bytes_beyond_level2", [](const M& m) { return beyond(total_bytes(m), kLevel2Bytes); }},
    Feature{"element_bytes", [](const M& m) { return m.element_bytes; }},
    Feature{"fused_size", [](const M& m) { return m.fused_size; }},
    Feature{"fused_operand_bytes", [](const M& m) { return m.fused_operand_bytes; }},
    Feature{"cheap_activation_size", [](const M& m) { return m.cheap_activation_size; }},
    Feature{"costly_activation_size", [](const M& m) { return m.costly_activation_size; }},
};

constexpr std::array kInputImage{
    Feature{"input_height", [](const M& m) { return m.in.height; }},
    Feature{"input_width", [](const M& m) { return m.in.width; }},
    Feature{"input_channels", [](const M& m) { return m.in.channels; }},
};

constexpr std::array kOutputImage{
    Feature{"output_height", [](const M& m) { return m.out.height; }},
    Feature{"output_width", [](const M& m) { return m.out.width; }},
    Feature{"output_channels", [](const M& m) { return m.out.channels; }},
};

constexpr std::array kWindow{
    Feature{"stride", [](const M& m) { return m.window.stride; }},
    Feature{"kernel_height", [](const M& m) { return m.window.height; }},
    Feature{"kernel_width", [](const M& m) { return m.window.width; }},
};

constexpr std::array kConvolution{
    Feature{"dilation", [](const M& m) { return m.window.dilation; }},
    Feature{"depth", [](const M& m) { return m.depth; }},
    Feature{"output_pixels", output_pixels},
    Feature{"padded_flops", padded_flops},
    Feature{"padded_output_size",
            [](const M& m) { return output_pixels(m) * rounded_up(m.out.channels, kLanes); }},
    Feature{"patch_size", patch_size},
    Feature{"weight_bytes_beyond_level1",
            [](const M& m) { return beyond(m.weight_bytes, kLevel1Bytes); }},
    Feature{"weight_bytes_beyond_level2",
            [](const M& m) { return beyond(m.weight_bytes, kLevel2Bytes); }},
};

constexpr std::array kWinograd{Feature{"winograd_flops", winograd_flops}};

constexpr std::array kGroups{
    Feature{"groups", [](const M& m) { return m.groups; }},
    Feature{"input_channels_per_group", [](const M& m) { return m.in.channels / m.groups; }},
    Feature{"output_channels_per_group", [](const M& m) { return m.out.channels / m.groups; }},
};

// Later than all others: files of older predictors know the features before them.
constexpr std::array kFilled{
    Feature{"filled_flops", filled_flops},
    Feature{"filled_taps", filled_taps},
    Feature{"unblocked_flops", [](const M& m) { return is_blocked(m) ? 0 : m.flops; }},
    Feature{"uneven_flops", [](const M& m) { return is_in_fours(m) ? 0 : m.flops; }},
    Feature{"uneven_output_size", [](const M& m) { return is_in_fours(m) ? 0 : m.output_size; }},
};

constexpr std::array kShifted{Feature{"shifted_flops", shifted_flops}};

constexpr std::array kJoined{
    Feature{"joined_flops", [](const M& m) { return m.flops * joined_groups(m); }},
    Feature{"unjoined_flops", [](const M& m) { return joined_groups(m) == 0 ? m.flops : 0; }},
};

// Outside of blocks windows are unrolled into a matrix, and each group is a product by itself.
constexpr std::array kOutside{
    Feature{"outside_flops", [](const M& m) { return m.outside_blocks ? m.flops : 0; }},
    Feature{"outside_patch_size",
            [](const M& m) {
              const bool unrolled = m.outside_blocks && (taps(m) > 1 || m.window.stride > 1);
              return unrolled ? patch_size(m) : 0;
            }},
    Feature{"outside_groups", [](const M& m) { return m.outside_blocks ? m.groups : 0; }},
};

constexpr std::array kReordered{
    Feature{"reordered_size", [](const M& m) { return m.reordered_size; }},
};

// Averages and maxima are other kernels, and what each pixel costs by itself is more than channels
// tell where there are few.
constexpr std::array kPooling{
    Feature{"output_pixels", output_pixels},
    Feature{"averaged_pixels", [](const M& m) { return m.averages ? output_pixels(m) : 0; }},
    Feature{"averaged_flops", [](const M& m) { return m.averages ? m.flops : 0; }},
};

constexpr std::array kProduct{
    Feature{"rows", [](const M& m) { return m.out.height * m.out.width * m.out.batch; }},
    Feature{"depth", [](const M& m) { return m.depth; }},
    Feature{"filters", [](const M& m) { return m.out.channels; }},
    Feature{"padded_flops",
            [](const M& m) {
              return m.flops / std::max(1.0, m.out.channels) * rounded_up(m.out.channels, kLanes);
            }},
    Feature{"weight_bytes_beyond_level2",
            [](const M& m) { return beyond(m.weight_bytes, kLevel2Bytes); }},
};

constexpr std::array kReduction{
    Feature{"kernel_height", [](const M& m) { return m.window.height; }},
    Feature{"kernel_width", [](const M& m) { return m.window.width; }},
};

constexpr std::array kParts{
    Feature{"operands", [](const M& m) { return m.operands; }},
    Feature{"results", [](const M& m) { return m.results; }},
};

constexpr std::array kPadding{
    Feature{"padding_size", [](const M& m) { return std::max(0.0, m.output_size - m.input_size); }},
};

constexpr std::array kOperands{
    Feature{"operands", [](const M& m) { return m.operands; }},
};

using Features = std::vector<const Feature*>;

Features joined(std::initializer_list<std::span<const Feature>> parts) {
  Features all;
  for (const auto& feature : kGeneric) all.push_back(&feature);
  for (const auto part : parts) {
    for (const auto& feature : part) all.push_back(&feature);
  }
  return all;
}

Features features_for(std::string_view kind) {
  if (kind == "conv2d" || kind == "winograd") {
    return joined({kInputImage, kOutputImage, kWindow, kConvolution, kWinograd, kFilled, kShifted,
                   kOutside, kReordered});
  }
  if (kind == "depthwise_conv2d" || kind == "transposed_conv2d") {
    return joined({kInputImage, kOutputImage, kWindow, kConvolution, kFilled, kShifted, kOutside,
                   kReordered});
  }
  if (kind == "grouped_conv2d") {
    return joined({kInputImage, kOutputImage, kWindow, kConvolution, kGroups, kFilled, kShifted,
                   kJoined, kOutside, kReordered});
  }
  if (kind == "fully_connected" || kind == "matmul")
    return joined({kInputImage, kProduct, kReordered});
  if (kind == "mean" || kind == "reduce") return joined({kInputImage, kReduction, kReordered});
  if (kind == "concat" || kind == "split")
    return joined({kInputImage, kOutputImage, kParts, kReordered});
  if (kind == "pooling") return joined({kInputImage, kOutputImage, kWindow, kPooling, kReordered});
  if (kind == "padding") return joined({kInputImage, kOutputImage, kPadding, kReordered});
  if (kind == "elementwise") return joined({kInputImage, kOperands, kReordered});
  if (kind == "other") return joined({});
  return joined({kInputImage, kOutputImage, kReordered});
}

struct KindFeatures {
  Features features;
  std::vector<std::string> names;
};

/// Made once; the same for everybody.
const std::map<std::string, KindFeatures, std::less<>>& features_by_kind() {
  static const auto kByKind = [] {
    std::map<std::string, KindFeatures, std::less<>> all;
    for (const auto kind : kernel_kinds()) {
      KindFeatures entry{.features = features_for(kind)};
      for (const auto* feature : entry.features) entry.names.emplace_back(feature->name);
      all.emplace(kind, std::move(entry));
    }
    return all;
  }();
  return kByKind;
}

const KindFeatures& entry_for(std::string_view kind) {
  const auto& all = features_by_kind();
  const auto found = all.find(kind);
  return found == all.end() ? all.find("other")->second : found->second;
}

Result<KernelFeatures> features_with(const KernelMeter& meter, const Kernel& kernel) {
  FLEETFIT_ASSIGN(const auto measures, meter.measure(kernel));
  KernelFeatures result{.kind = kernel.kind};
  const auto& features = entry_for(kernel.kind).features;
  result.values.reserve(features.size());
  for (const auto* feature : features) result.values.push_back(feature->value(measures));
  return result;
}

}  // namespace

const std::vector<std::string>& generic_feature_names() { return entry_for("other").names; }

const std::vector<std::string>& feature_names(std::string_view kind) {
  return entry_for(kind).names;
}

Result<KernelFeatures> features_of(const graph::Graph& graph, const Kernel& kernel) {
  FLEETFIT_ASSIGN(const auto meter, KernelMeter::of(graph));
  return features_with(meter, kernel);
}

Result<std::vector<KernelFeatures>> features_of(const graph::Graph& graph,
                                                const std::vector<Kernel>& kernels) {
  FLEETFIT_ASSIGN(const auto meter, KernelMeter::of(graph));
  std::vector<KernelFeatures> all;
  all.reserve(kernels.size());
  for (const auto& kernel : kernels) {
    FLEETFIT_ASSIGN(auto features, features_with(meter, kernel));
    all.push_back(std::move(features));
  }
  return all;
}

Result<DeducedKernels> deduced_kernels(const graph::Graph& graph, const KernelRules& rules) {
  FLEETFIT_ASSIGN(auto plan, deduce_kernels(graph, rules));
  FLEETFIT_ASSIGN(auto features, features_of(graph, plan.kernels));
  DeducedKernels deduced{.kernels = std::move(plan.kernels), .features = std::move(features)};
  for (const auto& kernel : deduced.kernels) {
    std::vector<std::string_view> names;
    for (const int node : kernel.nodes)
      names.push_back(graph.nodes[static_cast<std::size_t>(node)].name);
    deduced.names.push_back(fmt::format("{}", fmt::join(names, "+")));
  }
  return deduced;
}

}  // namespace fleetfit::cost
