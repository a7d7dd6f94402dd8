#include "fleetfit/predict/analytic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fleetfit::predict {
namespace {

using ::testing::HasSubstr;

cost::KernelFeatures kernel(const std::string& kind,
                            const std::vector<std::pair<std::string, double>>& features) {
  cost::KernelFeatures result{.kind = kind};
  const auto& names = cost::feature_names(kind);
  result.values.assign(names.size(), 0.0);
  for (const auto& [name, value] : features) {
    const auto found = std::ranges::find(names, name);
    EXPECT_NE(found, names.end()) << name;
    result.values[static_cast<std::size_t>(found - names.begin())] = value;
  }
  return result;
}

double price_ms(const KernelPredictor& device, const cost::KernelFeatures& one) {
  return device.price(std::vector{one}).value().kernels[0].ms;
}

TEST(Roofline, TakesTheLongerOfArithmeticAndTraffic) {
  const auto device =
      RooflineDevice::build({}, {.gflops = 10, .gbytes_per_s = 1, .kernel_us = 2}).value();
  // 20 MFLOP at 10 GFLOP/s: 2 ms. 300,000 floats at 1 GB/s: 1.2 ms.
  const auto compute = kernel(
      "conv2d", {{"flops", 20e6}, {"input_size", 1e5}, {"output_size", 1e5}, {"weight_size", 1e5}});
  EXPECT_DOUBLE_EQ(price_ms(device, compute), 2.002);
  const auto traffic =
      kernel("elementwise", {{"flops", 1e6}, {"input_size", 2e5}, {"output_size", 1e5}});
  EXPECT_DOUBLE_EQ(price_ms(device, traffic), 1.202);
}

TEST(Roofline, ReachesAShareOfItsPeakWithSomeKinds) {
  const auto device =
      RooflineDevice::build(
          {}, {.gflops = 10, .kernel_us = 0, .efficiency = {{"depthwise_conv2d", 0.25}}})
          .value();
  EXPECT_DOUBLE_EQ(price_ms(device, kernel("conv2d", {{"flops", 1e7}})), 1);
  EXPECT_DOUBLE_EQ(price_ms(device, kernel("depthwise_conv2d", {{"flops", 1e7}})), 4);
}

TEST(Roofline, AddsKernelsAndOverheadUp) {
  const auto device =
      RooflineDevice::build({}, {.gflops = 1, .kernel_us = 0, .network_ms = 3, .spread90 = 0})
          .value();
  const auto price =
      device
          .price(std::vector{kernel("conv2d", {{"flops", 1e6}}), kernel("mean", {{"flops", 2e6}})})
          .value();
  EXPECT_DOUBLE_EQ(price.latency_ms, 6);
  EXPECT_DOUBLE_EQ(price.overhead_ms, 3);
  EXPECT_EQ(price.interval90, (core::Interval{.low = 6, .high = 6}));
}

// One tile each way: 8 output and 4 input channels, 3x3, 4x4 pixels.
TEST(Accelerator, TakesTheSlowestOfComputingLoadingAndStoring) {
  const auto conv = kernel("conv2d", {{"input_channels", 4},
                                      {"output_channels", 8},
                                      {"output_height", 4},
                                      {"output_width", 4},
                                      {"kernel_height", 3},
                                      {"kernel_width", 3},
                                      {"stride", 1}});
  AcceleratorSpecification s{.output_tile = 8,
                             .input_tile = 4,
                             .input_ports = 1000,
                             .output_ports = 1000,
                             .weight_ports = 1000,
                             .row_tile = 4,
                             .column_tile = 4,
                             .mhz = 1};
  const auto cycles = [&] { return price_ms(TiledAccelerator::build({}, s).value(), conv) * 1e3; };
  // Arithmetic: 9 x 16 = 144 cycles for the tile; once more as nothing hides the first load, and
  // 8 x 16 / 1000 cycles to store.
  EXPECT_NEAR(cycles(), 144 + 144 + 0.128, 1e-9);
  s.weight_ports = 1;  // 8 x 4 x 9 = 288 weights, one per cycle
  EXPECT_NEAR(cycles(), 288 + 288 + 0.128, 1e-9);
  s.weight_ports = 1000;
  s.input_ports = 1;  // 4 x 6 x 6 inputs: the window needs a border
  EXPECT_NEAR(cycles(), 144 + 144 + 0.128, 1e-9);
  s.input_ports = 1000;
  s.output_ports = 1;  // 8 x 16 = 128 outputs, hidden behind 144 cycles but for the last
  EXPECT_NEAR(cycles(), 144 + 144 + 128, 1e-9);
}

TEST(Accelerator, RepeatsTilesInAllDirections) {
  const auto conv = kernel("conv2d", {{"input_channels", 9},
                                      {"output_channels", 17},
                                      {"output_height", 5},
                                      {"output_width", 8},
                                      {"kernel_height", 1},
                                      {"kernel_width", 1},
                                      {"stride", 1}});
  const AcceleratorSpecification s{.output_tile = 8,
                                   .input_tile = 4,
                                   .input_ports = 1000,
                                   .output_ports = 1000,
                                   .weight_ports = 1000,
                                   .row_tile = 4,
                                   .column_tile = 4,
                                   .mhz = 1};
  // 2 x 2 tiles of pixels, 3 of outputs, 3 of inputs, 16 cycles each.
  EXPECT_NEAR(price_ms(TiledAccelerator::build({}, s).value(), conv) * 1e3,
              4 * 3 * 3 * 16 + 16 + 0.128, 1e-9);
}

TEST(Accelerator, ComputesDepthwiseChannelsSideBySide) {
  const auto conv = kernel("depthwise_conv2d", {{"input_channels", 64},
                                                {"output_channels", 64},
                                                {"output_height", 4},
                                                {"output_width", 4},
                                                {"kernel_height", 3},
                                                {"kernel_width", 3},
                                                {"stride", 1}});
  const AcceleratorSpecification s{.depthwise_tile = 32,
                                   .input_ports = 1000,
                                   .output_ports = 1000,
                                   .weight_ports = 1000,
                                   .row_tile = 4,
                                   .column_tile = 4,
                                   .mhz = 1};
  EXPECT_NEAR(price_ms(TiledAccelerator::build({}, s).value(), conv) * 1e3, 2 * 144 + 144 + 0.512,
              1e-9);
}

TEST(Accelerator, ComesInTheNineConfigurationsOfTheLiterature) {
  const auto all = zcu102_accelerators();
  ASSERT_EQ(all.size(), 9U);
  EXPECT_EQ(all[6].output_tile, 220);
  EXPECT_EQ(all[6].input_tile, 8);
  EXPECT_EQ(all[6].depthwise_tile, 704);
  EXPECT_EQ(all[1].weight_ports, 22);
  for (const auto& s : all)
    EXPECT_LE(s.output_tile * s.input_tile, 2520);  // as many multipliers as the chip has
}

TEST(AnalyticDevices, AreReadBackAsTheyWereWritten) {
  const Identity identity{.device = "paper", .precision = "int8"};
  const auto roofline =
      RooflineDevice::build(identity, {.gflops = 12.5, .efficiency = {{"mean", 0.5}}}).value();
  const auto accelerator = TiledAccelerator::build(identity, zcu102_accelerators()[7]).value();
  for (const KernelPredictor* device :
       std::initializer_list<const KernelPredictor*>{&roofline, &accelerator}) {
    const auto json = device->to_json();
    const auto copy = kernel_predictor_from_json(core::JsonView(json, "device.json"));
    ASSERT_TRUE(copy) << copy.error().message;
    EXPECT_EQ((*copy)->to_json(), json);
    EXPECT_EQ((*copy)->identity(), identity);
  }
}

TEST(AnalyticDevices, RefuseRatesThatAreNone) {
  EXPECT_THAT(RooflineDevice::build({}, {.gflops = 0}).error().message,
              HasSubstr("gflops is 0, not above 0"));
  EXPECT_THAT(RooflineDevice::build({}, {.kernel_us = -1}).error().message, HasSubstr("kernel_us"));
  EXPECT_THAT(RooflineDevice::build({}, {.efficiency = {{"mean", 2}}}).error().message,
              HasSubstr("mean"));
  EXPECT_THAT(TiledAccelerator::build({}, {.input_tile = 0}).error().message,
              HasSubstr("input_tile"));
  auto json = TiledAccelerator::build({}, {}).value().to_json();
  json["input_ports"] = 0;
  EXPECT_THAT(kernel_predictor_from_json(core::JsonView(json, "d.json")).error().message,
              HasSubstr("d.json: input_ports"));
}

}  // namespace
}  // namespace fleetfit::predict
