// Programs side by side, and the same program again: nobody disturbs anybody.
#include <gtest/gtest.h>

#include <thread>

#include "fleetfit/engine/calibrate.h"
#include "tests/engine/compare.h"
#include "tests/engine/small_networks.h"

namespace fleetfit::engine {
namespace {

using graph::Graph;

constexpr int kRuns = 3;

Graph small_quantized_network(const std::string& name) {
  const Graph graph = small_network(name).value();
  return quantize_on(graph, random_samples(graph, 1)).value();
}

/// A network with inputs and the way it is run.
struct Job {
  Job(Graph network, const EngineOptions& way)
      : graph(std::move(network)), options(way), inputs(graph::random_inputs(graph, 11)) {}

  Graph graph;
  EngineOptions options;
  std::vector<graph::Value> inputs;
};

std::vector<Job> different_jobs() {
  std::vector<Job> jobs;
  for (const int threads : {1, 2}) {
    const EngineOptions options{.threads = threads, .choosing = Choosing::fixed};
    EngineOptions with_xnnpack = options;
    with_xnnpack.library = Library::xnnpack;
    jobs.emplace_back(small_network("mobilenet_v2").value(), options);
    jobs.emplace_back(small_network("shufflenet_v2_x1_0").value(), options);
    jobs.emplace_back(small_quantized_network("mobilenet_v2"), options);
    jobs.emplace_back(small_network("mobilenet_v2").value(), with_xnnpack);
  }
  return jobs;
}

/// The outputs of several runs; nothing if a run differs from the first or fails.
std::optional<std::vector<graph::Value>> run_often(const Job& job) {
  std::optional<std::vector<graph::Value>> first;
  for (int run = 0; run < kRuns; ++run) {
    auto outputs = run_on_engine(job.graph, job.inputs, job.options);
    if (!outputs) return std::nullopt;
    if (!first)
      first = std::move(*outputs);
    else if (!(outputs->at(0).data == first->at(0).data))
      return std::nullopt;
  }
  return first;
}

TEST(Concurrency, ProgramsSideBySideGiveTheSameBitsAsAlone) {
  const auto jobs = different_jobs();
  std::vector<std::optional<std::vector<graph::Value>>> alone;
  for (const Job& job : jobs) alone.push_back(run_often(job));
  std::vector<std::optional<std::vector<graph::Value>>> together(jobs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] { together[i] = run_often(jobs[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_TRUE(alone[i] && together[i]) << i;
    EXPECT_TRUE(alone[i]->at(0).data == together[i]->at(0).data) << i;
  }
}

TEST(Concurrency, AProgramMayMoveFromThreadToThread) {
  const Job job(small_network("mobilenet_v2").value(), {.threads = 2, .choosing = Choosing::fixed});
  auto program = Program::prepare(job.graph, job.options).value();
  ASSERT_TRUE(program.set_input(0, job.inputs[0]));
  ASSERT_TRUE(program.run());
  const auto expected = program.output_value(0);
  for (int i = 0; i < 3; ++i) {
    std::thread([&] { EXPECT_TRUE(program.run()); }).join();
    EXPECT_TRUE(program.output_value(0).data == expected.data);
  }
}

TEST(Concurrency, ThreadsOfOneProgramDoNotChangeAnothers) {
  const Graph graph = small_network("squeezenet1_1").value();
  const auto inputs = graph::random_inputs(graph, 3);
  auto one = Program::prepare(graph, {.threads = 1, .choosing = Choosing::fixed}).value();
  auto two = Program::prepare(graph, {.threads = 2, .choosing = Choosing::fixed}).value();
  std::vector<graph::Value> results;
  for (Program* program : {&one, &two, &one, &two}) {
    ASSERT_TRUE(program->set_input(0, inputs[0]));
    ASSERT_TRUE(program->run());
    results.push_back(program->output_value(0));
  }
  EXPECT_TRUE(results[0].data == results[2].data);
  EXPECT_TRUE(results[1].data == results[3].data);
  EXPECT_LT(relative_difference(results[0], results[1]), 1e-5);
}

TEST(Concurrency, PreparingTwiceGivesTheSameBits) {
  for (const auto& name : {"mobilenet_v2", "shufflenet_v2_x1_0", "efficientnet_b0"}) {
    const Job job(small_network(name).value(), {.threads = 2, .choosing = Choosing::fixed});
    const auto first = run_on_engine(job.graph, job.inputs, job.options).value();
    const auto second = run_on_engine(job.graph, job.inputs, job.options).value();
    EXPECT_TRUE(first[0].data == second[0].data) << name;
  }
}

TEST(Concurrency, KnownChoicesMakeTheSameProgramAgain) {
  const Graph graph = small_network("mobilenet_v2").value();
  auto first = Program::prepare(graph).value();
  auto second = Program::prepare(graph, {.known = first.new_choices()}).value();
  EXPECT_TRUE(second.new_choices().empty());
  EXPECT_FALSE(second.used_choices().empty());
  const auto third = Program::prepare(graph, {.known = second.used_choices()}).value();
  EXPECT_TRUE(third.new_choices().empty());
  const auto kernels = [](const Program& program) {
    std::vector<std::string> names;
    for (const auto& step : program.step_times()) names.push_back(step.kernel);
    return names;
  };
  EXPECT_EQ(kernels(first), kernels(second));
}

}  // namespace
}  // namespace fleetfit::engine
