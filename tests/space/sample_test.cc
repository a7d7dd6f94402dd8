#include <gtest/gtest.h>

#include <set>

#include "fleetfit/space/space.h"
#include "small_space.h"

namespace fleetfit::space {
namespace {

const Space& icpe() { return *find_space("icpe").value(); }

TEST(SampleDesigns, ADesignDependsOnItsNumberAlone) {
  const auto all = sample_designs(icpe(), {.seed = 7, .count = 20}).value();
  const auto later = sample_designs(icpe(), {.seed = 7, .first = 12, .count = 5}).value();
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(icpe().format(later[i]), icpe().format(all[12 + i]));
  EXPECT_NE(icpe().format(sample_designs(icpe(), {.seed = 8, .count = 1}).value()[0]),
            icpe().format(all[0]));
}

TEST(SampleDesigns, AreDifferentUntilThereAreNoMore) {
  const SmallSpace space;
  const auto all = sample_designs(space, {.count = 12}).value();
  std::set<std::string> texts;
  for (std::size_t i = 0; i < all.size(); ++i) texts.insert(space.format(all[i]));
  EXPECT_EQ(texts.size(), 12U);
  const auto more = sample_designs(space, {.first = 5, .count = 8});
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("12 designs"), std::string::npos) << more.error().message;
  EXPECT_FALSE(sample_designs(space, {.first = 13}));
}

}  // namespace
}  // namespace fleetfit::space
