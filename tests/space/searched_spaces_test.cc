#include <gtest/gtest.h>

#include <algorithm>

#include "fleetfit/cost/cost.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/graph/zoo.h"
#include "fleetfit/space/space.h"

namespace fleetfit::space {
namespace {

const Space& known(std::string_view name) { return *find_space(name).value(); }

struct Size {
  std::int64_t flops = 0;
  std::int64_t params = 0;

  bool operator==(const Size&) const = default;
};

Size size_of(const graph::Graph& graph) {
  const auto total = cost::count_cost(graph).value().total;
  return {total.flops, total.params};
}

Size size_of(std::string_view space, const std::string& design) {
  const auto choices = known(space).parse(design);
  EXPECT_TRUE(choices) << choices.error().message;
  return size_of(known(space).lower(*choices).value());
}

Size zoo_size(std::string_view name, const graph::ZooOptions& options = {}) {
  return size_of(graph::build_zoo_network(name, options).value());
}

std::string power(std::uint64_t base, int exponent) {
  DesignCount count = 1;
  for (int i = 0; i < exponent; ++i) count *= base;
  return count.decimal();
}

/// Spaces of this module but icpe, which has tests of its own.
std::vector<const Space*> searched_spaces() {
  std::vector<const Space*> found;
  for (const auto& space : spaces()) {
    if (space->name() != "icpe") found.push_back(space.get());
  }
  return found;
}

TEST(SearchedSpaces, HaveAsManyDesignsAsTheirPapersSay) {
  EXPECT_EQ(known("fbnet").size().decimal(), power(9, 22));
  // Once-for-All: ((3 x 3)^2 + (3 x 3)^3 + (3 x 3)^4)^5, about 2 x 10^19, with 25 image sizes.
  DesignCount ofa = 81 + 729 + 6561;
  ofa = ofa * ofa * ofa * ofa * ofa;
  EXPECT_NEAR(ofa.approximate(), 2.2e19, 0.05e19);
  EXPECT_EQ(known("ofa-mbv3").size().decimal(), (ofa * DesignCount(25)).decimal());
  EXPECT_EQ(known("mobilenetv2").size().decimal(), (ofa * DesignCount(9)).decimal());
}

TEST(SearchedSpaces, SamplesLowerAndReadBack) {
  for (const Space* space : searched_spaces()) {
    const auto designs = sample_designs(*space, {.count = 30}).value();
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto text = space->format(designs[i]);
      EXPECT_TRUE(std::ranges::equal(space->parse(text).value(), designs[i])) << text;
      const auto cells = space->cells(designs[i]);
      EXPECT_EQ(cells.size(), space->columns().size());
      const std::vector<std::string_view> views(cells.begin(), cells.end());
      EXPECT_TRUE(std::ranges::equal(space->parse_cells(views).value(), designs[i])) << text;
      auto graph = space->lower(designs[i]);
      ASSERT_TRUE(graph) << space->name() << " " << text << ": " << graph.error().message;
      ASSERT_TRUE(graph::infer_shapes(*graph)) << text;
      ASSERT_TRUE(graph::validate(*graph)) << text;
    }
  }
}

TEST(SearchedSpaces, SlotsAreActiveWithTheirGenes) {
  for (const Space* space : searched_spaces()) {
    const auto designs = sample_designs(*space, {.count = 50}).value();
    for (std::size_t i = 0; i < designs.size(); ++i)
      EXPECT_EQ(space->active_slots(designs[i]), space->Space::active_slots(designs[i]));
  }
}

TEST(SearchedSpaces, TheEngineRunsThem) {
  for (const Space* space : searched_spaces()) {
    const std::vector<Choice> first(space->genes().size());  // the smallest, or nearly so
    auto program = engine::Program::prepare(space->lower(first).value(),
                                            {.choosing = engine::Choosing::fixed});
    ASSERT_TRUE(program) << space->name() << ": " << program.error().message;
    EXPECT_TRUE(program->run()) << space->name();
  }
}

TEST(SearchedSpaces, MutantsAndChildrenAreDesigns) {
  core::Random random(1);
  for (const Space* space : searched_spaces()) {
    const auto parents = sample_designs(*space, {.count = 2}).value();
    for (int i = 0; i < 50; ++i) {
      std::vector<Choice> child(space->genes().size());
      space->crossover(random, parents[0], parents[1], child);
      EXPECT_TRUE(space->check(child));
      space->mutate(random, 0.3, child);
      EXPECT_TRUE(space->check(child));
    }
  }
}

TEST(FbNet, HasThePublishedNetworksInIt) {
  // Skipped blocks are those that the published networks do not have.
  EXPECT_EQ(size_of("fbnet", "0340076377468704674773"), zoo_size("fbnet_b"));
  EXPECT_EQ(size_of("fbnet", "0300876737677777677773"), zoo_size("fbnet_c"));
}

TEST(FbNet, SkippingWhereTheSizeChangesIsAConvolution) {
  const auto graph = known("fbnet").lower(std::vector<Choice>(22, 8)).value();
  std::vector<std::int64_t> channels;
  for (const auto& node : graph.nodes) {
    if (graph::type_name(node.op) == "Conv")
      channels.push_back((*graph.tensor(node.outputs[0]).shape)[1]);
  }
  EXPECT_EQ(channels, (std::vector<std::int64_t>{16, 24, 32, 64, 112, 184, 352, 1984}));
}

TEST(OfaMbv3, IsTheSupernetOfWidth1_2) {
  EXPECT_EQ(size_of("ofa-mbv3", "d44444-ks77777777777777777777-e66666666666666666666-r224"),
            zoo_size("ofa_mbv3_max", {.width = 1.2}));
  EXPECT_EQ(size_of("ofa-mbv3", "d22222-ks3333333333-e3333333333-r128"),
            zoo_size("ofa_mbv3_min", {.width = 1.2, .image = 128}));
  EXPECT_EQ(size_of("ofa-mbv3", "d34444-ks3535535753535733353-e3434463663466646663-r224"),
            zoo_size("ofa_mbv3_flops_595m", {.image = 224}));
}

TEST(OfaMbv3, LayersPastTheDepthAreNotLookedAt) {
  const Space& space = known("ofa-mbv3");
  const std::vector<std::string_view> cells = {"75557757573753735353", "64466343363336346436",
                                               "22223", "204"};
  const auto design = space.parse_cells(cells).value();
  EXPECT_TRUE(space.check(design));
  EXPECT_EQ(space.format(design), "d22223-ks75775753535-e64633636643-r204");
  EXPECT_EQ(
      space.cells(design),
      (std::vector<std::string>{"75337733573353335353", "64336333363336336433", "22223", "204"}));
}

TEST(OfaMbv3, ErrorsNameColumnAndGene) {
  const std::vector<std::string_view> cells = {"7555775757375373535", "64466343363336346436",
                                               "22223", "204"};
  EXPECT_EQ(known("ofa-mbv3").parse_cells(cells).error().message,
            "ks: block 20 kernel: the text ends, not 3, 5, 7");
}

TEST(MobileNetV2, HasTheWidthsOfTheSupernet) {
  const auto graph =
      known("mobilenetv2")
          .lower(known("mobilenetv2").parse("d22222-ks33333333333-e33333333333").value())
          .value();
  std::vector<std::int64_t> projected;  // linear convolutions: no activation behind the batch norm
  for (const auto& node : graph.nodes) {
    if (graph::type_name(node.op) != "Conv") continue;
    const auto channels = (*graph.tensor(node.outputs[0]).shape)[1];
    if (projected.empty() || projected.back() != channels) projected.push_back(channels);
  }
  // Stem 40, first block 24, then 32, 56, 104, 128, 248, 416 with three times their input between.
  EXPECT_EQ(projected, (std::vector<std::int64_t>{40,  24,  72,  32,  96,  32,  96,  56,  168,
                                                  56,  168, 104, 312, 104, 312, 128, 384, 128,
                                                  384, 248, 744, 248, 744, 416, 1664}));
}

TEST(MobileNetV3, WithItsOwnChannelsIsTheLargeOneWithThreeBlocksLess) {
  const auto small = size_of(
      "mobilenetv3",
      "16/k3-m16-16/k3-m64-24/k3-m72-24/k5-m72-40/k5-m120-40/k3-m240-80/k3-m200-80/k3-m184-80/"
      "k3-m480-112/k3-m672-112/k5-m672-160/k5-m960-160");
  // A block of 40 (middle 120, squeezed to 32), of 80 (184) and of 160 (960, squeezed to 240): two
  // 1x1 convolutions, a depthwise one, three batch norms, and two biased ones of
  // squeeze-and-excite.
  constexpr std::int64_t kBlock40 =
      2 * 40 * 120 + 25 * 120 + 2 * (120 + 120 + 40) + 2 * 120 * 32 + 32 + 120;
  constexpr std::int64_t kBlock80 = 2 * 80 * 184 + 9 * 184 + 2 * (184 + 184 + 80);
  constexpr std::int64_t kBlock160 =
      2 * 160 * 960 + 25 * 960 + 2 * (960 + 960 + 160) + 2 * 960 * 240 + 240 + 960;
  EXPECT_EQ(small.params + kBlock40 + kBlock80 + kBlock160, zoo_size("mobilenet_v3_large").params);
}

TEST(ProxylessNas, HasTheSupernetsChannelsInTheMiddleOfEachRange) {
  for (const Gene& gene : known("proxylessnas").genes()) {
    if (!gene.name.ends_with("channels")) continue;
    EXPECT_GE(gene.values.back() / gene.values.front(), 3) << gene.name;
    EXPECT_TRUE(
        std::ranges::any_of(std::vector<double>{16, 24, 40, 80, 96, 192, 320},
                            [&](double base) { return std::ranges::count(gene.values, base) > 0; }))
        << gene.name;
  }
  EXPECT_EQ(known("proxylessnas").slots().size(), 4 * 21U);
}

}  // namespace
}  // namespace fleetfit::space
