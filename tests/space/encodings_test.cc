#include <gtest/gtest.h>

#include "fleetfit/space/space.h"
#include "small_space.h"

namespace fleetfit::space {
namespace {

using Row = std::vector<Choice>;
using Features = std::vector<double>;

const Space& known(std::string_view name) { return *find_space(name).value(); }

Features encoded(const Space& space, std::string_view encoding, const Row& design) {
  const auto number = space.find_encoding(encoding).value();
  Population designs(space.genes().size());
  designs.add(design);
  Features features(space.encodings()[number].features.size(), 77);
  space.encode(designs, number, features);
  return features;
}

const std::vector<std::string>& features_of(const Space& space, std::string_view encoding) {
  return space.encodings()[space.find_encoding(encoding).value()].features;
}

TEST(Encodings, OneHotHasAColumnForEachChoiceAndAConstant) {
  const SmallSpace space;
  EXPECT_EQ(
      features_of(space, "one-hot"),
      (std::vector<std::string>{"kind none", "kind conv", "kernel 1", "kernel 3", "channels 4",
                                "channels 8", "channels 12", "channels 16", "constant"}));
  EXPECT_EQ(encoded(space, "one-hot", {1, 1, 2}), (Features{0, 1, 0, 1, 0, 0, 1, 0, 1}));
  EXPECT_EQ(encoded(space, "one-hot", {0, 0, 0}), (Features{1, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(Encodings, LiveIsOneHotWhereNothingCanBeDead) {
  const SmallSpace space;
  EXPECT_EQ(encoded(space, "live", {1, 1, 2}), encoded(space, "one-hot", {1, 1, 2}));
  EXPECT_EQ(features_of(space, "live"), features_of(space, "one-hot"));
}

TEST(Encodings, CountsAddUpWhatBlocksHaveInCommon) {
  const Space& fbnet = known("fbnet");
  EXPECT_EQ(features_of(fbnet, "counts"),
            (std::vector<std::string>{"k3_e1", "k3_e1_g2", "k3_e3", "k3_e6", "k5_e1", "k5_e1_g2",
                                      "k5_e3", "k5_e6", "skip"}));
  const auto design = fbnet.parse("0000011112223344556678").value();
  EXPECT_EQ(encoded(fbnet, "counts", design), (Features{5, 4, 3, 2, 2, 2, 2, 1, 1}));
}

TEST(Encodings, CountsOfAGeneWithManyAmountsAreTheirSum) {
  const Space& ofa = known("ofa-mbv3");
  const auto design = ofa.parse("d22222-ks3333333333-e6666666666-r160").value();
  EXPECT_EQ(features_of(ofa, "counts").back(), "image");
  EXPECT_EQ(encoded(ofa, "counts", design), (Features{0, 0, 10, 0, 0, 0, 0, 0, 0, 160}));
}

TEST(Encodings, BlocksOfMobileNetV2AreNineCombinationsOrNone) {
  const Space& space = known("mobilenetv2");
  EXPECT_EQ(features_of(space, "one-hot").size(), 21 * 9 + 1U);
  // Two blocks of 3 and 3 in each stage, the last block has 7 and 6.
  const auto design = space.parse("d22222-ks33333333337-e33333333336").value();
  Features expected(190);
  for (std::size_t stage = 0; stage < 5; ++stage) {
    expected[(4 * stage) * 9] = 1;
    expected[(4 * stage + 1) * 9] = 1;
  }
  expected[20 * 9 + 8] = 1;
  expected[189] = 1;
  EXPECT_EQ(encoded(space, "one-hot", design), expected);
  EXPECT_EQ(features_of(space, "one-hot")[188], "block 21 k7_e6");
}

TEST(Encodings, BlocksOfAChainTellTheirInputToo) {
  const Space& space = known("mobilenetv3");
  ASSERT_EQ(space.slots().size(), 48U);
  EXPECT_EQ(space.slots()[4].name, "block 2 input");
  EXPECT_EQ(space.slots()[4].genes, space.slots()[3].genes);  // what the first block gives
}

TEST(Encodings, TakenColumnsAreThoseThatAreOne) {
  for (const auto& space : spaces()) {
    const auto designs = sample_designs(*space, {.count = 20}).value();
    std::vector<std::uint32_t> columns(space->slots().size() + 1);
    for (const std::size_t encoding : {1U, 2U}) {
      for (std::size_t i = 0; i < designs.size(); ++i) {
        Features expected(space->encodings()[encoding].features.size());
        const auto count = space->taken_columns(designs[i], encoding, columns);
        for (std::size_t k = 0; k < count; ++k) expected[columns[k]] = 1;
        Features features(expected.size());
        space->encode(designs.batch().part(i, 1), encoding, features);
        EXPECT_EQ(features, expected) << space->name();
      }
    }
  }
}

}  // namespace
}  // namespace fleetfit::space
