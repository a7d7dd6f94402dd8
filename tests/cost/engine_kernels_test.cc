#include <gtest/gtest.h>

#include <array>

#include "fleetfit/cost/kernels.h"
#include "fleetfit/engine/calibrate.h"
#include "fleetfit/engine/program.h"
#include "tests/engine/small_networks.h"

namespace fleetfit::cost {
namespace {

/// What the engine says that it will run.
std::vector<ProfileEntry> steps_of(const graph::Graph& graph, engine::Library library) {
  const auto program =
      engine::Program::prepare(graph, {.library = library, .choosing = engine::Choosing::fixed});
  if (!program) {
    ADD_FAILURE() << program.error().message;
    return {};
  }
  std::vector<ProfileEntry> entries;
  for (const auto& step : program->step_times())
    entries.push_back({step.name, step.type, step.kernel, 1});
  return entries;
}

std::string names(const graph::Graph& graph, const std::vector<int>& nodes) {
  std::string text;
  for (const int index : nodes) text += " " + graph.nodes[static_cast<std::size_t>(index)].name;
  return text;
}

void expect_alike(const graph::Graph& graph, engine::Library library, std::string_view target) {
  const auto rules = KernelRules::builtin("engine")->for_target(target).value();
  const auto plan = deduce_kernels(graph, rules);
  ASSERT_TRUE(plan) << plan.error().message;
  const auto matched = match_profile(graph, steps_of(graph, library));
  EXPECT_TRUE(matched.unmatched.empty()) << matched.unmatched.front().name;
  for (const auto& difference : compare_kernels(plan->kernels, matched.kernels).differences) {
    std::string ran;
    for (const auto& nodes : difference.ran) ran += names(graph, nodes) + ";";
    ADD_FAILURE() << "deduced" << names(graph, difference.deduced) << ", ran" << ran;
  }
}

/// Networks that between them have all that is fused or folded away.
constexpr std::array kNetworks{
    "mobilenet_v3_small", "shufflenet_v1_g3_x0_5", "shufflenet_v2_x0_5", "resnet20",
    "densenet40_k12",     "ghostnet_x0_5",         "convnext_tiny",      "deit_tiny",
    "mobilevit_xxs"};

TEST(EngineRules, GiveTheKernelsThatTheEngineRunsWithXnnpack) {
  for (const auto* name : kNetworks) {
    SCOPED_TRACE(name);
    expect_alike(engine::small_network(name).value(), engine::Library::xnnpack, "xnnpack");
  }
}

TEST(EngineRules, GiveTheKernelsThatTheEngineRunsWithOneDnn) {
  if (engine::kernel_identity().find("no onednn") != std::string::npos)
    GTEST_SKIP() << "this build has no oneDNN";
  for (const auto* name : kNetworks) {
    SCOPED_TRACE(name);
    expect_alike(engine::small_network(name).value(), engine::Library::onednn, "onednn");
  }
}

TEST(EngineRules, GiveTheKernelsOfNetworksOf8Bits) {
  for (const auto* name : {"mobilenet_v3_small", "shufflenet_v2_x0_5", "resnet20"}) {
    SCOPED_TRACE(name);
    const auto graph = engine::small_network(name).value();
    const auto quantized = engine::quantize_on(graph, engine::random_samples(graph, 1), {});
    ASSERT_TRUE(quantized) << quantized.error().message;
    expect_alike(*quantized, engine::Library::xnnpack, "xnnpack");
  }
}

}  // namespace
}  // namespace fleetfit::cost
