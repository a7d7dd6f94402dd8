#include "train/tiny_is_zero.h"

#include <gtest/gtest.h>

#include <limits>

namespace fleetfit::train {
namespace {

// Half of it is no normal number any more; the compiler must not know.
float half_of_the_smallest() {
  volatile float smallest = std::numeric_limits<float>::min();
  volatile float half = smallest / 2;
  return half;
}

#if defined(__SSE2__) || defined(__aarch64__)
TEST(TinyIsZero, AsLongAsItLives) {
  EXPECT_GT(half_of_the_smallest(), 0);
  {
    const TinyIsZero here;
    EXPECT_EQ(half_of_the_smallest(), 0);
    {
      const TinyIsZero again;
      EXPECT_EQ(half_of_the_smallest(), 0);
    }
    EXPECT_EQ(half_of_the_smallest(), 0);
  }
  EXPECT_GT(half_of_the_smallest(), 0);
}
#endif

}  // namespace
}  // namespace fleetfit::train
