#include <gmock/gmock.h>

#include <cmath>

#include "fleetfit/learned/device_inputs.h"
#include "fleetfit/learned/networks.h"
#include "tests/learned/small_model.h"

namespace fleetfit::learned {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const space::Space& cells() { return **space::find_space("nasbench201"); }

std::vector<std::uint32_t> taken(const DesignColumns& columns, std::string_view text) {
  std::vector<std::uint32_t> out(columns.most_taken());
  out.resize(columns.taken(*columns.space().parse(text), out));
  return out;
}

TEST(DesignColumns, TellLiveOperatorsFromDeadOnes) {
  const DesignColumns columns(cells());
  EXPECT_EQ(columns.count(), 62);  // 6 edges x 5 operators and a constant, twice

  // Edge (0>1) is a 1x1 convolution whose result goes nowhere; (0>3) skips to the output.
  const auto numbers = taken(columns, "200100");

  EXPECT_THAT(numbers, testing::Contains(2));                 // placed
  EXPECT_THAT(numbers, testing::Not(testing::Contains(33)));  // but not live
  EXPECT_THAT(numbers, testing::Contains(31 + 3 * 5 + 1));    // the skip is
}

TEST(DesignColumns, HaveOneSetWhereNothingCanBeDead) {
  const auto& chain = **space::find_space("fbnet");
  const DesignColumns columns(chain);
  EXPECT_EQ(columns.count(), 22 * 9 + 1);
}

TEST(DesignNetwork, AddsLayersAndWhatGoesPastThem) {
  const DesignColumns columns(cells());
  auto parts = operator_sums({{1, 2, 3, 4, 5}});
  // A hidden neuron that counts 3x3 convolutions above two: relu(count - 2), times 10.
  auto first = zero_layer(columns.count(), 2);
  for (std::size_t edge = 0; edge < 6; ++edge) first.weights[(edge * 5 + 3) * 2] = 1;
  first.bias = {-2, -5};
  auto last = zero_layer(2, 1);
  last.weights = {10, 1000};
  last.bias = {0.5};
  parts.layers = {first, last};
  const auto network = DesignNetwork::make(parts, columns.count()).value();
  float out = 0;
  std::vector<float> scratch;

  network.apply(taken(columns, "333300"), std::span(&out, 1), scratch);

  EXPECT_FLOAT_EQ(out, 4 * 4 + 2 * 1 + 10 * 2 + 0.5F);
}

TEST(DesignNetwork, RefusesLayersThatDoNotFit) {
  auto parts = operator_sums({{1, 2, 3, 4, 5}});
  EXPECT_THAT(DesignNetwork::make(parts, 61).error().message, HasSubstr("layers[0]"));
  parts.skip.bias[0] = NAN;
  EXPECT_THAT(DesignNetwork::make(parts, 62).error().message, HasSubstr("skip: a weight"));
}

TEST(DeviceInputs, TakeTheLevelAwayFromReferences) {
  const auto inputs = two_references();

  const auto device = inputs.read(std::vector{2.0, 8.0}).value();

  EXPECT_NEAR(device.level, std::log(4.0), 1e-12);
  EXPECT_NEAR(device.inputs[0], -std::log(2.0), 1e-6);
  EXPECT_NEAR(device.inputs[1], std::log(2.0), 1e-6);
  EXPECT_NEAR(device.distance, 0.1 * 2 * std::log(2.0) * std::log(2.0), 1e-6);
  EXPECT_EQ(device.missing, 0);
}

TEST(DeviceInputs, FillInWhatIsMissingAsItGoesWithTheOthers) {
  const auto device = two_references().read(std::vector{std::exp(1.0), double{NAN}}).value();

  EXPECT_EQ(device.missing, 1);
  // With covariance 0.5 and variance 1, the other one is expected at half of it: ln = 0.5.
  EXPECT_NEAR(device.level, 0.75, 1e-3);
}

TEST(DeviceInputs, RefuseWhatCannotBe) {
  const auto inputs = two_references();
  EXPECT_THAT(inputs.read(std::vector{0.0, 1.0}).error().message,
              HasSubstr("feature ref:a: 0 is not positive"));
  EXPECT_THAT(inputs.read(std::vector{1.0, 1e300}).error().message, HasSubstr("too large"));
  EXPECT_THAT(inputs.read(std::vector{double{NAN}, double{NAN}}).error().message,
              HasSubstr("all features are missing"));
  EXPECT_THAT(inputs.read(std::vector{1.0}).error().message, HasSubstr("expected 2"));
}

TEST(FitDeviceInputs, GivesInputsOfMeanZeroWhateverTheSpeed) {
  const KnownFeatures known{.names = {"ref:a", "ref:b", "spec:cores"},
                            .is_reference = {true, true, false},
                            .values = {1, 2, 4, 10, 40, 8, 100, 100, 6, 7, 14, double{NAN}}};

  const auto inputs = fit_device_inputs(known, 0.3).value();

  std::vector<double> sums(3);
  for (std::size_t d = 0; d < 4; ++d) {
    const auto device = inputs.read(known.row(d)).value();
    for (std::size_t i = 0; i < 3; ++i) sums[i] += device.inputs[i];
  }
  EXPECT_NEAR(sums[0], 0, 1e-5);
  EXPECT_NEAR(sums[1], 0, 1e-5);
  // Ten times as slow everywhere is the same device at another level.
  const auto quick = inputs.read(std::vector{1.0, 2.0, 4.0}).value();
  const auto slow = inputs.read(std::vector{10.0, 20.0, 4.0}).value();
  EXPECT_NEAR(slow.level - quick.level, std::log(10.0), 1e-9);
  EXPECT_NEAR(slow.inputs[0], quick.inputs[0], 1e-5);
}

TEST(FitDeviceInputs, NamesAFeatureThatNobodyHas) {
  const KnownFeatures known{.names = {"spec:a", "spec:b"},
                            .is_reference = {false, false},
                            .values = {1, NAN, 2, NAN, 3, NAN}};
  EXPECT_THAT(fit_device_inputs(known, 0.3).error().message, HasSubstr("spec:b"));
}

TEST(OptimizerNetwork, TakesTheLikeliestChoicesFirst) {
  auto parts = undecided_parts(cells(), 3);
  for (auto& gene : parts.genes) gene.out.bias = {0, 1, 0, 3, 0};
  const auto network = OptimizerNetwork::make(parts, cells(), 3).value();
  space::Population designs(6);

  network.propose(cells(), std::vector<float>{0, 0, 0}, 3, designs);

  ASSERT_EQ(designs.size(), 3);
  EXPECT_EQ(cells().format(designs[0]), "333333");
  // The next likeliest differ in one gene.
  for (const std::size_t i : {1U, 2U}) {
    const auto text = cells().format(designs[i]);
    EXPECT_EQ(std::ranges::count(text, '3'), 5) << text;
    EXPECT_EQ(std::ranges::count(text, '1'), 1) << text;
  }
}

TEST(OptimizerNetwork, LaterGenesKnowEarlierChoices) {
  auto parts = undecided_parts(cells(), 1, 1);
  // The state counts how often choice 4 was taken: the first gene takes it, all others then avoid
  // it because the state says so.
  parts.genes[0].out.bias = {0, 0, 0, 0, 5};
  parts.genes[0].choices.weights = {0, 0, 0, 0, 1};
  parts.hidden.weights = {1};
  for (std::size_t gene = 1; gene < 6; ++gene) {
    parts.genes[gene].out.weights = {0, 0, 9, 0, 0};
    parts.genes[gene].out.bias = {0, 0, 0, 0, 3};
  }
  const auto network = OptimizerNetwork::make(parts, cells(), 1).value();
  space::Population designs(6);
  network.propose(cells(), std::vector<float>{0}, 1, designs);
  EXPECT_EQ(cells().format(designs[0]), "422222");
}

TEST(OptimizerNetwork, ProposesOnlyDesignsOfTheSpace) {
  for (const auto& space : space::spaces()) {
    auto parts = undecided_parts(*space, 2);
    core::Random random(7);
    for (auto& gene : parts.genes)
      for (float& bias : gene.out.bias) bias = static_cast<float>(random.normal());
    const auto network = OptimizerNetwork::make(parts, *space, 2).value();
    space::Population designs(space->genes().size());
    network.propose(*space, std::vector<float>{1, 2}, 5, designs);
    ASSERT_GT(designs.size(), 0) << space->name();
    for (std::size_t i = 0; i < designs.size(); ++i)
      EXPECT_TRUE(space->check(std::as_const(designs)[i])) << space->name();
  }
}

TEST(OptimizerNetwork, RefusesPartsOfAnotherSpace) {
  const auto parts = undecided_parts(**space::find_space("fbnet"), 2);
  EXPECT_THAT(OptimizerNetwork::make(parts, cells(), 2).error().message, HasSubstr("genes"));
}

}  // namespace
}  // namespace fleetfit::learned
