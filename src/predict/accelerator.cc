#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fleetfit/predict/analytic.h"
#include "predict/analytic_price.h"
#include "predict/kernel_features.h"
#include "predict/predictor_fields.h"

namespace fleetfit::predict {
namespace {

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

}  // namespace

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

Result<TiledAccelerator> TiledAccelerator::build(Identity identity,
                                                 AcceleratorSpecification specification) {
  FLEETFIT_TRY(core::check(specification));
  return TiledAccelerator(std::move(identity), specification);
}

Result<NetworkPrice> TiledAccelerator::price(std::span<const cost::KernelFeatures> kernels) const {
  const auto& s = specification_;
  return analytic_price(
      kernels, {.kernel_ms = s.kernel_us / 1e3, .network_ms = s.network_ms, .spread90 = s.spread90},
      [&](const cost::KernelFeatures& kernel) { return cycles_of(s, kernel) / (s.mhz * 1e3); });
}

nlohmann::json TiledAccelerator::to_json() const {
  return document("accelerator", identity_, specification_);
}

Result<std::unique_ptr<KernelPredictor>> TiledAccelerator::from_json(const core::JsonView& json,
                                                                     Identity identity) {
  FLEETFIT_ASSIGN(const auto s, core::read<AcceleratorSpecification>(json));
  auto device = build(std::move(identity), s);
  if (!device) return json.error(device.error().message);
  return std::make_unique<TiledAccelerator>(std::move(*device));
}

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
