// What a program takes of memory, and when. A test program of its own: it counts every allocation.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "fleetfit/engine/calibrate.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/zoo.h"
#include "tests/engine/compare.h"

namespace {

/// What was allocated by whom, in this thread, while a test asked for it. oneDNN makes a small map
/// of arguments whenever a primitive is executed, which nobody can keep it from.
struct Allocations {
  bool counted = false;
  int ours = 0;
  int of_onednn = 0;
  std::size_t largest_of_onednn = 0;
};
thread_local Allocations allocations;

bool is_in_onednn(const void* code) {
  Dl_info info{};
  return dladdr(code, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

void count(std::size_t bytes, const void* caller) {
  if (!allocations.counted) return;
  if (is_in_onednn(caller)) {
    ++allocations.of_onednn;
    allocations.largest_of_onednn = std::max(allocations.largest_of_onednn, bytes);
  } else {
    ++allocations.ours;
  }
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t step = std::max(alignment, alignof(std::max_align_t));
  void* memory = std::aligned_alloc(step, (bytes / step + 1) * step);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  count(bytes, __builtin_return_address(0));
  return allocate(bytes, 1);
}
void* operator new[](std::size_t bytes) {
  count(bytes, __builtin_return_address(0));
  return allocate(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  count(bytes, __builtin_return_address(0));
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  count(bytes, __builtin_return_address(0));
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  count(bytes, __builtin_return_address(0));
  return allocate(bytes, 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  count(bytes, __builtin_return_address(0));
  return allocate(bytes, 1);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace fleetfit::engine {
namespace {

using graph::Graph;

Graph network(const std::string& name,
              const graph::ZooOptions& options = {.width = 0.5, .image = 64}) {
  return graph::build_zoo_network(name, options).value();
}

template <class Work>
Allocations allocations_of(const Work& work) {
  allocations = {.counted = true};
  work();
  allocations.counted = false;
  return allocations;
}

void expect_no_allocation(Program& program) {
  ASSERT_TRUE(program.run());  // what happens at the first run alone may allocate
  ASSERT_TRUE(program.run_timed());
  bool succeeded = true;
  const auto made = allocations_of(
      [&] { succeeded = program.run().has_value() && program.run_timed().has_value(); });
  EXPECT_TRUE(succeeded);
  EXPECT_EQ(made.ours, 0);
  EXPECT_LT(made.largest_of_onednn, 4096U);
}

TEST(Memory, TheCounterCounts) {
  const auto made = allocations_of([] { const std::vector<int> some(3); });
  EXPECT_EQ(made.ours, 1);
  EXPECT_EQ(made.of_onednn, 0);
}

class RunsAllocateNothing : public testing::TestWithParam<std::string> {};

TEST_P(RunsAllocateNothing, InFloats) {
  const Graph graph = network(GetParam());
  for (const int threads : {1, 2}) {
    for (const auto choosing : {Choosing::fixed, Choosing::measured}) {
      auto program = Program::prepare(graph, {.threads = threads, .choosing = choosing}).value();
      expect_no_allocation(program);
    }
  }
}

TEST_P(RunsAllocateNothing, InFloatsWithXnnpack) {
  auto program = Program::prepare(network(GetParam()),
                                  {.library = Library::xnnpack, .choosing = Choosing::fixed})
                     .value();
  expect_no_allocation(program);
}

TEST_P(RunsAllocateNothing, InBytes) {
  const Graph graph = network(GetParam());
  const auto quantized = quantize_on(graph, random_samples(graph, 1)).value();
  auto program = Program::prepare(quantized, {.choosing = Choosing::fixed}).value();
  expect_no_allocation(program);
}

INSTANTIATE_TEST_SUITE_P(Zoo, RunsAllocateNothing,
                         testing::Values("mobilenet_v2", "squeezenet1_1", "shufflenet_v2_x1_0",
                                         "mobilenet_v3_small"),
                         [](const auto& test) { return test.param; });

/// Bytes of all tensors that nodes make.
std::size_t activation_bytes(const Graph& graph) {
  std::size_t bytes = 0;
  for (const auto& node : graph.nodes) {
    for (const auto id : node.outputs) {
      const auto& tensor = graph.tensor(id);
      if (!tensor.data) {
        bytes +=
            static_cast<std::size_t>(graph::elements(*tensor.shape)) * graph::size_of(tensor.dtype);
      }
    }
  }
  return bytes;
}

TEST(Memory, TensorsThatNeverMeetShareIt) {
  Graph graph = network("mobilenet_v2", {});
  const auto program = Program::prepare(graph, {.choosing = Choosing::fixed}).value();
  ASSERT_TRUE(graph::simplify(graph));
  // The widest place reads 1 x 16 x 112 x 112 and makes 1 x 96 x 112 x 112 floats: 5.6 MB. The
  // image comes and goes in 0.6 MB.
  constexpr std::size_t kWidest = (16 + 96) * 112 * 112 * sizeof(float);
  EXPECT_GE(program.arena_bytes(), kWidest);
  EXPECT_LT(program.arena_bytes(), kWidest + 2'000'000);
  EXPECT_GT(activation_bytes(graph), 4 * program.arena_bytes());
}

TEST(Memory, WeightsAreKeptOnce) {
  const Graph graph = network("mobilenet_v2", {});
  const auto program = Program::prepare(graph, {.choosing = Choosing::fixed}).value();
  // 3,504,872 parameters as published; batch norms are folded, some blocks are filled up.
  EXPECT_GT(program.weight_bytes(), 3'400'000 * sizeof(float));
  EXPECT_LT(program.weight_bytes(), 3'800'000 * sizeof(float));
}

TEST(Memory, RunsLeaveInputsAsTheyAreAndRepeatThemselves) {
  for (const auto& name : {"mobilenet_v2", "shufflenet_v2_x1_0", "squeezenet1_1"}) {
    const Graph graph = network(name);
    for (const auto library : {Library::automatic, Library::xnnpack}) {
      auto program =
          Program::prepare(graph, {.library = library, .choosing = Choosing::fixed}).value();
      const auto inputs = graph::random_inputs(graph, 5);
      ASSERT_TRUE(program.set_input(0, inputs[0]));
      ASSERT_TRUE(program.run());
      const auto first = program.output_value(0);
      for (int run = 0; run < 3; ++run) {
        EXPECT_TRUE(std::ranges::equal(program.input(0), inputs[0].data.bytes()));
        ASSERT_TRUE(program.run());
        EXPECT_TRUE(program.output_value(0).data == first.data);
      }
    }
  }
}

TEST(Memory, OutputsDependOnTheInputsOfTheirOwnRunAlone) {
  const Graph graph = network("mobilenet_v2");
  auto program = Program::prepare(graph, {.choosing = Choosing::fixed}).value();
  const auto run_on = [&](std::uint64_t seed) {
    EXPECT_TRUE(program.set_input(0, graph::random_inputs(graph, seed)[0]));
    EXPECT_TRUE(program.run());
    return program.output_value(0);
  };
  const auto first = run_on(1);
  const auto second = run_on(2);
  EXPECT_FALSE(first.data == second.data);
  EXPECT_TRUE(run_on(1).data == first.data);
}

}  // namespace
}  // namespace fleetfit::engine
