#include "fleetfit/app/bundles.h"

#include <gtest/gtest.h>

#include "fleetfit/engine/program.h"
#include "fleetfit/graph/import.h"
#include "tests/core/temporary_folder.h"
#include "tests/elastic/conv_supernet.h"

namespace fleetfit::app {
namespace {

std::vector<float> run(const graph::Graph& network) {
  auto program = engine::Program::prepare(network, {.choosing = engine::Choosing::fixed}).value();
  const graph::Recipe image{.count = 2 * 4 * 4, .spread = 1, .seed = 3};
  EXPECT_TRUE(program.set_input(
      0, {.shape = {1, 2, 4, 4}, .data = graph::TensorData::generate(image), .quantization = {}}));
  EXPECT_TRUE(program.run());
  const auto data = program.output_value(0).data;
  return {data.as<float>().begin(), data.as<float>().end()};
}

TEST(ExtractSubnet, WritesTheNetworkThatTheBundleRuns) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "conv.ffb";
  ASSERT_TRUE(elastic::write_bundle({.models = {elastic::conv_supernet()}}, file));
  const auto bundle = elastic::read_bundle(file).value();
  const elastic::SubnetSpace space(bundle.models);
  for (const std::string code : {"o-o", "s1-o", "o-s2", "m1"}) {
    const auto target = folder.path() / (code + ".onnx");
    EXPECT_EQ(extract_subnet(file, code, target).value().subnet, code);
    const auto inside = run(space.lower(space.parse(code).value()).value());
    EXPECT_EQ(run(graph::import_model(target).value().graph), inside) << code;
    EXPECT_EQ(inside.size(), 3U);
  }
}

}  // namespace
}  // namespace fleetfit::app
