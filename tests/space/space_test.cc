#include "fleetfit/space/space.h"

#include <gtest/gtest.h>

#include <set>

#include "small_space.h"

namespace fleetfit::space {
namespace {

using Row = std::vector<Choice>;

std::string message(const Status& status) { return status ? "" : status.error().message; }

TEST(Space, VisitsEveryDesignOnce) {
  const SmallSpace space;
  Row design(3);
  std::set<std::string> texts;
  do {
    EXPECT_TRUE(space.check(design));
    EXPECT_TRUE(texts.insert(space.format(design)).second);
  } while (space.next(design));
  EXPECT_EQ(texts.size(), 12U);
}

TEST(Space, WritesOnlyWhatMeansSomething) {
  const SmallSpace space;
  EXPECT_EQ(space.format(Row{0, 0, 3}), "none-16");
  EXPECT_EQ(space.format(Row{1, 1, 0}), "conv-k3-4");
  EXPECT_EQ(space.parse("conv-k3-4").value(), (Row{1, 1, 0}));
  EXPECT_EQ(space.parse("none-16").value(), (Row{0, 0, 3}));
}

TEST(Space, NamesTheGeneThatCannotBeRead) {
  const SmallSpace space;
  EXPECT_EQ(space.parse("dense-4").error().message, "kind: found 'dense-4', not none, conv");
  EXPECT_EQ(space.parse("conv-k5-4").error().message, "kernel: found '5-4', not 1, 3");
  EXPECT_EQ(space.parse("conv").error().message, "kernel: the text ends, not '-k'");
  EXPECT_EQ(space.parse("none-4x").error().message, "'x' stands behind the end of the design");
}

TEST(Space, NamesTheGeneThatIsNotThere) {
  const SmallSpace space;
  EXPECT_EQ(message(space.check(Row{1, 2, 0})),
            "kernel: there is no choice 2, there are 2 from 0 on");
  EXPECT_EQ(message(space.check(Row{0, 1, 0})),
            "kernel: it is 1 and means nothing here, where it has to be 0");
  EXPECT_EQ(message(space.check(Row{0, 0})),
            "a design of the space small has 3 genes, this one has 2");
  EXPECT_FALSE(space.lower(Row{0, 0, 4}));
}

TEST(Space, MakesDesignsCanonical) {
  const SmallSpace space;
  Row design{0, 1, 2};
  space.make_canonical(design);
  EXPECT_EQ(design, (Row{0, 0, 2}));
}

TEST(Space, MutationWithCertaintyChangesEveryActiveGene) {
  const SmallSpace space;
  core::Random random(1);
  bool drew_kernel_3 = false;
  for (int i = 0; i < 50; ++i) {
    Row design{0, 0, 2};
    space.mutate(random, 1, design);
    EXPECT_EQ(design[0], 1);
    EXPECT_NE(design[2], 2);
    EXPECT_TRUE(space.check(design));
    drew_kernel_3 |= design[1] == 1;
  }
  EXPECT_TRUE(drew_kernel_3);  // a gene that becomes active is drawn
}

TEST(Space, MutationWithoutProbabilityChangesNothing) {
  const SmallSpace space;
  core::Random random(1);
  Row design{1, 1, 2};
  space.mutate(random, 0, design);
  EXPECT_EQ(design, (Row{1, 1, 2}));
}

TEST(Space, ChildrenHaveGenesOfTheirParents) {
  const SmallSpace space;
  core::Random random(1);
  const Row a{0, 0, 0};
  const Row b{1, 1, 3};
  std::set<Row> children;
  for (int i = 0; i < 100; ++i) {
    Row child(3, 77);
    space.crossover(random, a, b, child);
    EXPECT_TRUE(space.check(child));
    EXPECT_TRUE(child[0] == 0 || child[1] == 1);  // the kernel is that of the only parent with one
    EXPECT_TRUE(child[2] == 0 || child[2] == 3);
    children.insert(child);
  }
  EXPECT_EQ(children.size(), 4U);
}

TEST(Space, EncodesKindsAsColumnsAndAmountsAsNumbers) {
  const SmallSpace space;
  const auto& encoding = space.encodings()[space.find_encoding("genes").value()];
  EXPECT_EQ(encoding.features,
            (std::vector<std::string>{"kind none", "kind conv", "kernel", "channels"}));
  Population designs(3);
  designs.add(Row{1, 1, 2});
  designs.add(Row{0, 0, 3});
  std::vector<double> features(8);
  space.encode(designs, 0, features);
  EXPECT_EQ(features, (std::vector<double>{0, 1, 3, 12, 1, 0, 0, 16}));
  EXPECT_FALSE(space.find_encoding("nosuch"));
}

TEST(Spaces, AreFoundByName) {
  EXPECT_EQ(find_space("icpe").value()->name(), "icpe");
  const auto missing = find_space("nosuch");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_NE(missing.error().message.find("icpe"), std::string::npos);
}

}  // namespace
}  // namespace fleetfit::space
