#include "fleetfit/search/scaling.h"

#include <gtest/gtest.h>

#include "tests/search/toy_space.h"

namespace fleetfit::search {
namespace {

TEST(ScaledDesigns, TakeBlocksFromTheDeepestStageAndAddThemToTheShallowest) {
  const DepthSpace space;
  // Depths 3 and 3. Less: the last stage first, then the first. More: likewise.
  const auto design = space.parse(" d3 k3 k5 k7 d3 k7 k5 k3").value();

  const auto scaled = scaled_designs(space, design).value();

  ASSERT_EQ(scaled.size(), 5U);
  const auto text = [&](std::size_t i) { return space.format(scaled.batch()[i]); };
  EXPECT_EQ(text(0), " d2 k3 k5 d2 k7 k5");
  EXPECT_EQ(text(1), " d3 k3 k5 k7 d2 k7 k5");
  EXPECT_EQ(text(2), " d3 k3 k5 k7 d3 k7 k5 k3");
  EXPECT_EQ(text(3), " d3 k3 k5 k7 d4 k7 k5 k3 k3");  // a new block is like the one before it
  EXPECT_EQ(text(4), " d4 k3 k5 k7 k7 d4 k7 k5 k3 k3");
}

TEST(ScaledDesigns, EndWhereTheSpaceDoes) {
  const DepthSpace space;
  const auto design = space.parse(" d2 k3 k3 d2 k3 k3").value();
  const auto scaled = scaled_designs(space, design, {.most_blocks = 9}).value();
  EXPECT_EQ(scaled.size(), 5U);  // itself, and four blocks more
  EXPECT_EQ(space.format(scaled.batch()[0]), " d2 k3 k3 d2 k3 k3");
}

TEST(ScaledDesigns, NeedAGeneOfDepth) {
  const ToySpace space(2, 3);
  const auto error = scaled_designs(space, std::vector<space::Choice>{0, 0}).error();
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_NE(error.message.find("toy"), std::string::npos);
}

TEST(ScaledDesigns, RefuseWhatIsNoDesign) {
  const DepthSpace space;
  EXPECT_FALSE(scaled_designs(space, std::vector<space::Choice>{0, 0}));
}

}  // namespace
}  // namespace fleetfit::search
