#include "engine/memory_plan.h"

#include <gtest/gtest.h>
#include <xnnpack.h>

#include <algorithm>

#include "engine/aligned_memory.h"

namespace fleetfit::engine {
namespace {

TEST(Arena, LetsPiecesThatNeverMeetShareMemory) {
  const auto plan = plan_arena({{640, 0, 1}, {640, 2, 3}});
  EXPECT_EQ(plan.bytes, 640U);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
}

TEST(Arena, KeepsPiecesApartThatMeet) {
  // A chain: each step reads the piece before and writes its own.
  const auto plan = plan_arena({{100, 0, 1}, {200, 1, 2}, {50, 2, 3}});
  EXPECT_EQ(plan.offsets[1], 0U);  // the largest first: 256 bytes after rounding up
  EXPECT_EQ(plan.offsets[0], 256U);
  EXPECT_EQ(plan.offsets[2], 256U);
  EXPECT_EQ(plan.bytes, 384U);
}

TEST(Arena, FillsTheTightestGap) {
  // At step 0 the gaps between the long-lived pieces are 256 and 128 bytes wide.
  const auto plan =
      plan_arena({{512, 0, 9}, {256, 5, 9}, {448, 0, 9}, {128, 5, 9}, {384, 0, 9}, {128, 0, 1}});
  EXPECT_EQ(plan.bytes, 512U + 256U + 448U + 384U + 128U);
}

TEST(Arena, HasNoMemoryForNothing) { EXPECT_EQ(plan_arena({}).bytes, 0U); }

/// A step that reads one tensor and writes another.
PlannedStep step(int from, int to) { return {.inputs = {from}, .outputs = {to}}; }

PlannedTensor bytes_tensor(std::int64_t bytes) {
  return {.operand = {.dtype = graph::DType::u8, .shape = {bytes}}};
}

TEST(MemoryPlan, LeavesSpareBytesBehindEveryTensor) {
  // Kernels of XNNPACK read past the end of their operands, but no more than this.
  static_assert(AlignedMemory::kSpareBytes >= XNN_EXTRA_BYTES);
  const Plan plan{.tensors = {bytes_tensor(64), bytes_tensor(64), bytes_tensor(64)},
                  .steps = {step(0, 1), step(1, 2)},
                  .inputs = {0},
                  .outputs = {2}};
  const auto memory = plan_memory(plan);
  std::vector<std::size_t> offsets = memory.offsets;
  std::ranges::sort(offsets);
  EXPECT_GE(offsets[1] - offsets[0], 64 + AlignedMemory::kSpareBytes);
  EXPECT_GE(offsets[2] - offsets[1], 64 + AlignedMemory::kSpareBytes);
  EXPECT_GE(memory.bytes - offsets[2], 64 + AlignedMemory::kSpareBytes);
}

TEST(MemoryPlan, KeepsInputsAndOutputsForTheWholeRun) {
  const Plan plan{
      .tensors = {bytes_tensor(64), bytes_tensor(640), bytes_tensor(640), bytes_tensor(64)},
      .steps = {step(0, 1), step(1, 2), step(2, 3)},
      .inputs = {0},
      .outputs = {3}};
  const auto memory = plan_memory(plan);
  // Nothing may lie where the input or the output lies, although neither is used in the middle.
  constexpr std::size_t kSmall = 64 + AlignedMemory::kSpareBytes;
  constexpr std::size_t kLarge = 640 + AlignedMemory::kSpareBytes;
  EXPECT_EQ(memory.bytes, 2 * kSmall + 2 * kLarge);
}

TEST(MemoryPlan, PutsATensorInsideAnotherWhereItBelongs) {
  Plan plan{.tensors = {bytes_tensor(64), bytes_tensor(128), bytes_tensor(64)},
            .steps = {step(0, 2)},
            .inputs = {0},
            .outputs = {1}};
  plan.tensors[2].inside = Place{1, 64};
  const auto memory = plan_memory(plan);
  EXPECT_EQ(memory.offsets[2], memory.offsets[1] + 64);
}

}  // namespace
}  // namespace fleetfit::engine
