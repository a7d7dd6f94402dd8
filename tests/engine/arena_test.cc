#include "engine/arena.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fleetfit::engine
