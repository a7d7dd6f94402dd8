#include "fleetfit/predict/analytic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/predict/samples.h"
#include "predict/documents.h"
#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

constexpr double kLeastKernelMs = 1e-6;

/// A kernel's features by name. Borrows them.
class NamedFeatures {
 public:
  explicit NamedFeatures(const cost::KernelFeatures& features)
      : features_(features), names_(cost::feature_names(features.kind)) {}

  /// `fallback` if the kind has no such feature.
  double get(std::string_view name, double fallback) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) return fallback;
    return features_.values[static_cast<std::size_t>(found - names_.begin())];
  }

 private:
  const cost::KernelFeatures& features_;
  const std::vector<std::string>& names_;
};

Status check_all(const RooflineSpecification& s) {
  FLEETFIT_TRY(core::check(s));
  for (const auto& [kind, share] : s.efficiency) {
    if (share > 0 && share <= 1) continue;
    return refuse(fmt::format("efficiency of {}: {} is not above 0 and up to 1", kind, share));
  }
  return {};
}

Status read_efficiency(const core::JsonView& json, RooflineSpecification& s) {
  FLEETFIT_ASSIGN(const auto members, json.members());
  for (const auto& [kind, value] : members) {
    FLEETFIT_ASSIGN(s.efficiency[kind], value.as_number());
  }
  return {};
}

nlohmann::ordered_json write_efficiency(const RooflineSpecification& s) { return s.efficiency; }

double ms_of(const RooflineSpecification& s, const cost::KernelFeatures& kernel) {
  const NamedFeatures features(kernel);
  const double values = features.get("input_size", 0) + features.get("output_size", 0) +
                        features.get("weight_size", 0);
  const auto found = s.efficiency.find(kernel.kind);
  const double gflops = s.gflops * (found == s.efficiency.end() ? 1 : found->second);
  return std::max(features.get("flops", 0) / (gflops * 1e6),
                  values * s.bytes_per_value / (s.gbytes_per_s * 1e6));
}

Status check_all(const AcceleratorSpecification& s) { return core::check(s); }

// The extents of a convolution's loops.
struct Loops {
  double output_channels = 1;  // of one group
  double input_channels = 1;
  double rows = 1;  // of the output
  double columns = 1;
  double kernel = 1;  // height x width
  double kernel_height = 1;
  double kernel_width = 1;
  double stride = 1;
  double groups = 1;
};

double tiles(double extent, double tile) { return std::ceil(extent / tile); }

// Cycles that one tile takes.
struct TileCycles {
  double inner = 0;   // arithmetic, inputs and weights at the same time
  double output = 0;  // to store what an output tile made
};

double input_pixels(const Loops& loops, double rows, double columns) {
  return ((rows - 1) * loops.stride + loops.kernel_height) *
         ((columns - 1) * loops.stride + loops.kernel_width);
}

TileCycles tile_cycles(const AcceleratorSpecification& s, const Loops& loops,
                       double output_channels, double input_channels, double weights) {
  const double rows = std::min<double>(s.row_tile, loops.rows);
  const double columns = std::min<double>(s.column_tile, loops.columns);
  const double arithmetic = loops.kernel * rows * columns;
  const double inputs = input_channels * input_pixels(loops, rows, columns) / s.input_ports;
  return {.inner = std::max({arithmetic, inputs, weights / s.weight_ports}),
          .output = output_channels * rows * columns / s.output_ports};
}

double spatial_tiles(const AcceleratorSpecification& s, const Loops& loops) {
  return tiles(loops.rows, s.row_tile) * tiles(loops.columns, s.column_tile);
}

double convolution_cycles(const AcceleratorSpecification& s, const Loops& loops) {
  const double outputs = std::min<double>(s.output_tile, loops.output_channels);
  const double inputs = std::min<double>(s.input_tile, loops.input_channels);
  const TileCycles tile = tile_cycles(s, loops, outputs, inputs, outputs * inputs * loops.kernel);
  const double output_tile =
      std::max(tiles(loops.input_channels, s.input_tile) * tile.inner, tile.output);
  // The first load and the last store have nothing to hide behind.
  return loops.groups *
         (spatial_tiles(s, loops) * tiles(loops.output_channels, s.output_tile) * output_tile +
          tile.inner + tile.output);
}

double depthwise_cycles(const AcceleratorSpecification& s, const Loops& loops) {
  const double channels = std::min<double>(s.depthwise_tile, loops.output_channels);
  const TileCycles tile = tile_cycles(s, loops, channels, channels, channels * loops.kernel);
  return spatial_tiles(s, loops) * tiles(loops.output_channels, s.depthwise_tile) *
             std::max(tile.inner, tile.output) +
         tile.inner + tile.output;
}

double transfer_cycles(const AcceleratorSpecification& s, const NamedFeatures& features) {
  return std::max({features.get("input_size", 0) / s.input_ports,
                   features.get("output_size", 0) / s.output_ports,
                   features.get("weight_size", 0) / s.weight_ports});
}

Loops loops_of(const NamedFeatures& features) {
  Loops loops{.output_channels = features.get("output_channels", features.get("filters", 1)),
              .input_channels = features.get("input_channels", 1),
              .rows = features.get("output_height", 1),
              .columns = features.get("output_width", 1),
              .kernel_height = features.get("kernel_height", 1),
              .kernel_width = features.get("kernel_width", 1),
              .stride = features.get("stride", 1),
              .groups = std::max(1.0, features.get("groups", 1))};
  loops.kernel = loops.kernel_height * loops.kernel_width;
  return loops;
}

double cycles_of(const AcceleratorSpecification& s, const cost::KernelFeatures& kernel) {
  const NamedFeatures features(kernel);
  Loops loops = loops_of(features);
  if (kernel.kind == "fully_connected") loops.input_channels = features.get("depth", 1);
  if (kernel.kind == "depthwise_conv2d") return depthwise_cycles(s, loops);
  if (kernel.kind == "conv2d" || kernel.kind == "winograd" || kernel.kind == "transposed_conv2d" ||
      kernel.kind == "fully_connected")
    return convolution_cycles(s, loops);
  if (kernel.kind == "grouped_conv2d") {
    loops.output_channels /= loops.groups;
    loops.input_channels /= loops.groups;
    return convolution_cycles(s, loops);
  }
  const double multipliers = static_cast<double>(s.output_tile) * s.input_tile;
  return std::max(transfer_cycles(s, features), features.get("flops", 0) / (2 * multipliers));
}

double ms_of(const AcceleratorSpecification& s, const cost::KernelFeatures& kernel) {
  return cycles_of(s, kernel) / (s.mhz * 1e3);
}

}  // namespace

core::Fields fields_of(const RooflineSpecification*) {
  using Specification = RooflineSpecification;
  static constexpr core::Field kAll[] = {
      core::field<&Specification::gflops>("gflops").above(0).may_be_missing(),
      core::field<&Specification::gbytes_per_s>("gbytes_per_s").above(0).may_be_missing(),
      core::field<&Specification::kernel_us>("kernel_us").from(0).may_be_missing(),
      core::field<&Specification::network_ms>("network_ms").from(0).may_be_missing(),
      core::field<&Specification::bytes_per_value>("bytes_per_value").above(0).may_be_missing(),
      core::field<&Specification::spread90>("spread90").from(0).may_be_missing(),
      core::field_by<Specification, read_efficiency, write_efficiency>("efficiency")
          .may_be_missing()};
  return {.what = "roofline", .all = kAll};
}

core::Fields fields_of(const AcceleratorSpecification*) {
  using Specification = AcceleratorSpecification;
  static constexpr core::Field kAll[] = {
      core::field<&Specification::output_tile>("output_tile").from(1).may_be_missing(),
      core::field<&Specification::input_tile>("input_tile").from(1).may_be_missing(),
      core::field<&Specification::depthwise_tile>("depthwise_tile").from(1).may_be_missing(),
      core::field<&Specification::input_ports>("input_ports").from(1).may_be_missing(),
      core::field<&Specification::output_ports>("output_ports").from(1).may_be_missing(),
      core::field<&Specification::weight_ports>("weight_ports").from(1).may_be_missing(),
      core::field<&Specification::row_tile>("row_tile").from(1).may_be_missing(),
      core::field<&Specification::column_tile>("column_tile").from(1).may_be_missing(),
      core::field<&Specification::mhz>("mhz").above(0).may_be_missing(),
      core::field<&Specification::kernel_us>("kernel_us").from(0).may_be_missing(),
      core::field<&Specification::network_ms>("network_ms").from(0).may_be_missing(),
      core::field<&Specification::spread90>("spread90").from(0).may_be_missing()};
  return {.what = "accelerator", .all = kAll};
}

template <class Specification>
Result<PaperDevice<Specification>> PaperDevice<Specification>::build(Identity identity,
                                                                     Specification specification) {
  FLEETFIT_TRY(check_all(specification));
  return PaperDevice(std::move(identity), std::move(specification));
}

/// The sum of the kernels, with the times to start them.
template <class Specification>
Result<NetworkPrice> PaperDevice<Specification>::price(
    std::span<const cost::KernelFeatures> kernels) const {
  const auto& s = specification_;
  NetworkPrice price{.latency_ms = s.network_ms, .overhead_ms = s.network_ms};
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (auto checked = check_features(kernels[i]); !checked)
      return core::within(fmt::format("kernel {} ({})", i, kernels[i].kind), checked.error());
    const double ms = std::max(s.kernel_us / 1e3 + ms_of(s, kernels[i]), kLeastKernelMs);
    price.kernels.push_back({.ms = ms, .interval90 = around(ms, s.spread90)});
    price.latency_ms += ms;
  }
  price.interval90 = around(price.latency_ms, s.spread90);
  return price;
}

template <class Specification>
nlohmann::json PaperDevice<Specification>::to_json() const {
  return document(fields_of(&specification_).what, identity_, specification_);
}

template <class Specification>
Result<std::unique_ptr<KernelPredictor>> PaperDevice<Specification>::from_json(
    const core::JsonView& json, Identity identity) {
  FLEETFIT_ASSIGN(auto specification, core::read<Specification>(json));
  FLEETFIT_ASSIGN(auto device,
                  core::within(json.place(), build(std::move(identity), std::move(specification))));
  return std::make_unique<PaperDevice>(std::move(device));
}

template class PaperDevice<RooflineSpecification>;
template class PaperDevice<AcceleratorSpecification>;

std::vector<AcceleratorSpecification> zcu102_accelerators() {
  struct Row {
    int output_tile, input_tile, depthwise_tile, input_ports, output_ports, weight_ports;
  };
  constexpr std::array kRows = {
      Row{160, 12, 576, 11, 8, 13},  Row{160, 12, 576, 5, 5, 22},   Row{160, 12, 576, 12, 13, 17},
      Row{160, 12, 576, 10, 10, 10}, Row{130, 12, 832, 10, 10, 10}, Row{100, 16, 832, 10, 10, 10},
      Row{220, 8, 704, 10, 10, 10},  Row{100, 16, 832, 6, 14, 10},  Row{100, 18, 704, 10, 10, 10}};
  std::vector<AcceleratorSpecification> all;
  for (const auto& row : kRows) {
    all.push_back({.output_tile = row.output_tile,
                   .input_tile = row.input_tile,
                   .depthwise_tile = row.depthwise_tile,
                   .input_ports = row.input_ports,
                   .output_ports = row.output_ports,
                   .weight_ports = row.weight_ports});
  }
  return all;
}

}  // namespace fleetfit::predict
