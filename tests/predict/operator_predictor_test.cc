#include "fleetfit/predict/operator_predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/predict/profiles.h"

namespace fleetfit::predict {
namespace {

using test::kernels_of;
using test::make_profiles;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const BoostOptions kQuick{
    .stages = 60, .depths = {4}, .least_child_samples = {1}, .leaf_penalties = {1}};

OperatorPredictor train(std::span<const NetworkSample> samples,
                        const TrainOptions& options = {.method = Method::lasso}, int threads = 2) {
  core::ThreadPool pool(threads);
  auto quick = options;
  quick.boost = kQuick;
  auto predictor = train_operator_predictor(samples, quick, pool);
  EXPECT_TRUE(predictor) << predictor.error().message;
  return std::move(*predictor);
}

double error_percent(const OperatorPredictor& predictor, std::span<const NetworkSample> networks) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const auto& network : networks) {
    predicted.push_back(predictor.price(kernels_of(network)).value().latency_ms);
    measured.push_back(network.latency_ms);
  }
  return mape_percent(predicted, measured);
}

double coverage(const OperatorPredictor& predictor, std::span<const NetworkSample> networks) {
  double inside = 0;
  for (const auto& network : networks) {
    const auto interval = predictor.price(kernels_of(network)).value().interval90;
    if (interval.low <= network.latency_ms && network.latency_ms <= interval.high) ++inside;
  }
  return inside / static_cast<double>(networks.size());
}

TEST(OperatorPredictor, LearnsALinearLawAndTheOverhead) {
  const auto predictor = train(make_profiles({}));
  EXPECT_LT(error_percent(predictor, make_profiles({.seed = 2})), 0.1);
  EXPECT_NEAR(predictor.overhead().of(10, 1), 0.05, 1e-9);
  EXPECT_EQ(predictor.identity().networks, 60);
  EXPECT_EQ(predictor.identity().method, "lasso");
}

/// What other networks take in the sum, as a part of what a line says that learned from so many.
double taken_of_predicted(int networks) {
  const auto predictor = train(make_profiles({.networks = networks, .noise = 0.3}));
  double measured = 0;
  double predicted = 0;
  for (const auto& network : make_profiles({.networks = 200, .noise = 0.3, .seed = 5})) {
    measured += network.latency_ms;
    predicted += predictor.price(kernels_of(network)).value().latency_ms;
  }
  return measured / predicted;
}

TEST(OperatorPredictor, AddsUpToWhatNetworksTakeWhereKernelsScatter) {
  EXPECT_NEAR(taken_of_predicted(100), 1, 0.03);
  EXPECT_NEAR(taken_of_predicted(30), 1, 0.08);  // 0.15 if few counted for nothing
}

TEST(OperatorPredictor, AddsKernelsAndOverheadUp) {
  const auto predictor = train(make_profiles({.noise = 0.1}), {.method = Method::boosted_trees});
  const auto price = predictor.price(kernels_of(make_profiles({.seed = 3})[0])).value();
  double sum = price.overhead_ms;
  for (const auto& kernel : price.kernels) {
    EXPECT_GT(kernel.ms, 0);
    EXPECT_LE(kernel.interval90.low, kernel.ms);
    EXPECT_GE(kernel.interval90.high, kernel.ms);
    sum += kernel.ms;
  }
  EXPECT_DOUBLE_EQ(price.latency_ms, sum);
  EXPECT_THAT(price.unpriced, IsEmpty());
}

class EachMethod : public testing::TestWithParam<Method> {};

TEST_P(EachMethod, PricesNetworksThatItHasNotSeen) {
  const auto predictor = train(make_profiles({.noise = 0.02}), {.method = GetParam()});
  EXPECT_LT(error_percent(predictor, make_profiles({.noise = 0.02, .seed = 4})), 10);
}

TEST_P(EachMethod, IsReadBackAsItWasWritten) {
  const auto predictor =
      train(make_profiles({.networks = 20, .noise = 0.02}), {.method = GetParam()});
  const auto json = core::parse_json(core::format_json(predictor.to_json()), "p.json").value();
  const auto copy = kernel_predictor_from_json(core::JsonView(json, "p.json"));
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ((*copy)->identity(), predictor.identity());
  const auto kernels = kernels_of(make_profiles({.seed = 5})[0]);
  const auto a = predictor.price(kernels).value();
  const auto b = (*copy)->price(kernels).value();
  EXPECT_EQ(a.latency_ms, b.latency_ms);
  EXPECT_EQ(a.interval90, b.interval90);
  EXPECT_EQ((*copy)->to_json(), predictor.to_json());
}

INSTANTIATE_TEST_SUITE_P(All, EachMethod,
                         testing::Values(Method::automatic, Method::lasso, Method::random_forest,
                                         Method::boosted_trees, Method::table),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST(OperatorPredictor, IsTheSameOnAnyNumberOfThreads) {
  const auto samples = make_profiles({.networks = 20, .noise = 0.1});
  const TrainOptions options{.method = Method::automatic, .seed = 9};
  EXPECT_EQ(train(samples, options, 1).to_json(), train(samples, options, 3).to_json());
}

TEST(OperatorPredictor, ChoosesLassoForALineAndTreesForARegime) {
  const auto line = train(make_profiles({}), {.method = Method::automatic});
  EXPECT_EQ(line.kinds()[0].method, "lasso");
  const auto regimes = make_profiles({.networks = 120}, [](const cost::KernelFeatures& kernel) {
    return test::plain_law(kernel) * (kernel.values.back() < 10 ? 1 : 4);
  });
  EXPECT_THAT(train(regimes, {.method = Method::automatic}).kinds()[0].method,
              testing::AnyOf("gbdt", "rf"));
}

TEST(OperatorPredictor, GivesEachCodePathOfAKindItsOwnModel) {
  // The library has no fast code for the largest of three windows.
  const auto& names = cost::feature_names("conv2d");
  const auto window =
      static_cast<std::size_t>(std::ranges::find(names, "kernel_height") - names.begin());
  const auto with_windows = [&](std::uint64_t seed) {
    auto samples = make_profiles({.seed = seed});
    core::Random random(seed);
    for (auto& network : samples) {
      for (auto& kernel : network.kernels) {
        if (kernel.features.kind != "conv2d") continue;
        kernel.features.values[window] = static_cast<double>(3 + 2 * random.below(3));
        const double more = kernel.ms * (kernel.features.values[window] == 7 ? 6 : 0);
        kernel.ms += more;
        network.latency_ms += more;
      }
    }
    return samples;
  };
  const auto predictor = train(with_windows(1));
  EXPECT_LT(error_percent(predictor, with_windows(2)), 0.5);
  ASSERT_EQ(predictor.kinds()[0].when.size(), 1U);
  EXPECT_EQ(predictor.kinds()[0].when[0].feature, window);
  EXPECT_EQ(predictor.kinds()[0].when[0].threshold, 6);
}

// The errors of networks are those of one factor per network and of many kernels that cancel.
TEST(OperatorPredictor, HoldsNineOfTenNetworksInItsIntervals) {
  const auto predictor =
      train(make_profiles({.networks = 150, .noise = 0.2, .network_noise = 0.05}));
  const double held = coverage(
      predictor, make_profiles({.networks = 400, .noise = 0.2, .network_noise = 0.05, .seed = 6}));
  EXPECT_GE(held, 0.85);
  EXPECT_LE(held, 0.95);
}

// Of few networks whose kernels differ by factors of ten, many new ones lie outside.
TEST(OperatorPredictor, HoldsNineOfTenNetworksWhereManyLieOutside) {
  const auto wide = [](int networks, std::uint64_t seed) {
    auto samples = make_profiles({.networks = networks, .noise = 0.2, .seed = seed});
    core::Random random(seed);
    for (auto& network : samples) {
      for (auto& kernel : network.kernels) {
        const double factor = std::exp(1.5 * random.normal());
        for (const std::size_t work : {0, 1}) kernel.features.values[work] *= factor;
        const double slower = factor * std::max(1.0, factor);  // caches are left behind
        network.latency_ms += kernel.ms * (slower - 1);
        kernel.ms *= slower;
      }
    }
    return samples;
  };
  constexpr int kSets = 20;
  double held = 0;
  for (std::uint64_t set = 1; set <= kSets; ++set)
    held += coverage(train(wide(30, set)), wide(100, 100 + set)) / kSets;
  EXPECT_GE(held, 0.85);
  EXPECT_LE(held, 0.95);
}

TEST(OperatorPredictor, HoldsNineOfTenKernelsInItsIntervals) {
  const auto predictor = train(make_profiles({.networks = 150, .noise = 0.2}));
  int inside = 0;
  int all = 0;
  for (const auto& network : make_profiles({.networks = 200, .noise = 0.2, .seed = 7})) {
    const auto price = predictor.price(kernels_of(network)).value();
    for (std::size_t i = 0; i < price.kernels.size(); ++i, ++all) {
      const auto& interval = price.kernels[i].interval90;
      if (interval.low <= network.kernels[i].ms && network.kernels[i].ms <= interval.high) ++inside;
    }
  }
  EXPECT_NEAR(static_cast<double>(inside) / all, 0.9, 0.03);
}

TEST(OperatorPredictor, ScalesKernelsWhereProfilingIsCostly) {
  auto samples = make_profiles({});
  for (auto& network : samples) {
    for (auto& kernel : network.kernels)
      kernel.ms *= 1.25;  // each operator is timed, which takes time
    network.overhead_ms *= 1.25;
  }
  EXPECT_LT(error_percent(train(samples), make_profiles({.seed = 8})), 0.1);
}

TEST(OperatorPredictor, FindsAnOverheadThatGrowsWithTheKernels) {
  auto samples = make_profiles({.networks = 10, .kernels = 10});
  for (auto& more : make_profiles({.networks = 10, .kernels = 40, .seed = 2}))
    samples.push_back(more);
  for (auto& network : samples) {
    network.overhead_ms = 0.1 + 0.01 * static_cast<double>(network.kernels.size());
    network.latency_ms += network.overhead_ms - 0.05;
  }
  const auto predictor = train(samples);
  EXPECT_NEAR(predictor.overhead().network_ms, 0.1, 1e-9);
  EXPECT_NEAR(predictor.overhead().kernel_ms, 0.01, 1e-9);
}

/// Three lengths of networks; where kernels take less than 30 ms the overhead is less in
/// proportion.
std::vector<NetworkSample> with_less_overhead_if_short() {
  std::vector<NetworkSample> samples;
  for (const int kernels : {4, 12, 40})
    for (auto& network :
         make_profiles({.networks = 12, .kernels = kernels, .overhead_ms = 0, .seed = 5}))
      samples.push_back(std::move(network));
  for (auto& network : samples) {
    network.overhead_ms = Overhead{.network_ms = 3, .full_from_ms = 30}.of(0, network.latency_ms);
    network.latency_ms += network.overhead_ms;
  }
  return samples;
}

TEST(OperatorPredictor, FindsAnOverheadThatIsLessInShortNetworks) {
  const auto samples = with_less_overhead_if_short();
  const auto predictor = train(samples);
  EXPECT_NEAR(predictor.overhead().full_from_ms, 30, 10);
  EXPECT_NEAR(predictor.overhead().of(4, 10), 1, 0.2);
  EXPECT_NEAR(predictor.overhead().of(40, 1000), 3, 0.3);
  EXPECT_LT(error_percent(predictor, samples), 2);
}

TEST(OperatorPredictor, OfAFileHasAnOverheadThatMakesSense) {
  auto json = train(with_less_overhead_if_short()).to_json();
  EXPECT_TRUE(kernel_predictor_from_json(core::JsonView(json, "p.json")));
  json["overhead"]["full_from_ms"] = -1;
  const auto read = kernel_predictor_from_json(core::JsonView(json, "p.json"));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("p.json: overhead.full_from_ms: is -1, below zero"));
  json["overhead"].erase("full_from_ms");  // as in files that were made before
  EXPECT_TRUE(kernel_predictor_from_json(core::JsonView(json, "p.json")));
}

TEST(OperatorPredictor, IsNotMisledByANetworkThatWasDisturbed) {
  auto samples = make_profiles({.networks = 30});
  samples[3].overhead_ms += 40;
  samples[3].latency_ms += 40;
  EXPECT_NEAR(train(samples).overhead().of(10, 1), 0.05, 1e-6);
}

TEST(OperatorPredictor, DoesNotListWhatIsSmallerThanAllThatWasMeasured) {
  const auto predictor = train(make_profiles({}));
  core::Random random(3);
  auto kernel = test::random_kernel(random, "conv2d");
  kernel.values[0] = 0.9e6;  // the least was 1e6, the largest 1e8
  EXPECT_THAT(predictor.price(std::vector{kernel}).value().unpriced, IsEmpty());
}

TEST(OperatorPredictor, GrowsBeyondTheRangeAndListsIt) {
  for (const auto method : {Method::lasso, Method::boosted_trees, Method::random_forest}) {
    const auto predictor = train(make_profiles({.networks = 40}), {.method = method});
    core::Random random(3);
    auto kernel = test::random_kernel(random, "conv2d");
    kernel.values[0] = 1e9;  // ten times the largest
    const auto price = predictor.price(std::vector{kernel}).value();
    EXPECT_NEAR(price.kernels[0].ms, 100, 15) << to_string(method);
    ASSERT_EQ(price.unpriced.size(), 1U);
    EXPECT_EQ(price.unpriced[0].kernel, 0U);
    EXPECT_THAT(price.unpriced[0].reason, HasSubstr("flops 1e+09 lies above the"));
    EXPECT_THAT(price.unpriced[0].nearest, HasSubstr("conv2d, flops "));
    EXPECT_GT(price.unpriced[0].nearest_ms, 0);
  }
}

TEST(OperatorPredictor, ToleratesASmallStepBeyondTheRange) {
  const auto predictor = train(make_profiles({}));
  core::Random random(3);
  auto kernel = test::random_kernel(random, "conv2d");
  kernel.values[0] = 1.1e8;
  EXPECT_THAT(predictor.price(std::vector{kernel}).value().unpriced, IsEmpty());
}

TEST(OperatorPredictor, IsLessSureOfWhatItHasNotSeen) {
  const auto predictor = train(make_profiles({.noise = 0.1}), {.method = Method::boosted_trees});
  core::Random random(3);
  const auto width = [&](double flops) {
    auto kernel = test::random_kernel(random, "conv2d");
    kernel.values[0] = flops;
    const auto price = predictor.price(std::vector{kernel}).value();
    return price.interval90.high / price.interval90.low;
  };
  EXPECT_GT(width(1e9), width(5e7));
  EXPECT_GT(width(1e10), width(1e9));
}

TEST(OperatorPredictor, PricesUnknownKindsAndListsThem) {
  const auto predictor = train(make_profiles({}));
  core::Random random(3);
  const std::vector kernels = {test::random_kernel(random, "conv2d"),
                               test::random_kernel(random, "softmax")};
  const auto price = predictor.price(kernels).value();
  EXPECT_GT(price.kernels[1].ms, 0);
  ASSERT_EQ(price.unpriced.size(), 1U);
  EXPECT_EQ(price.unpriced[0].kernel, 1U);
  EXPECT_EQ(price.unpriced[0].kind, "softmax");
  EXPECT_THAT(price.unpriced[0].reason, HasSubstr("too few kernels of this kind"));
  EXPECT_FALSE(price.unpriced[0].nearest.empty());
}

TEST(OperatorPredictor, ListsWhatATableDoesNotHold) {
  const auto samples = make_profiles({.networks = 10});
  const auto predictor = train(samples, {.method = Method::table});
  EXPECT_LT(error_percent(predictor, samples), 1e-6);
  EXPECT_THAT(predictor.price(kernels_of(samples[3])).value().unpriced, IsEmpty());
  EXPECT_EQ(predictor.price(kernels_of(make_profiles({.seed = 5})[0])).value().unpriced.size(),
            10U);
}

TEST(OperatorPredictor, NamesNetworkAndKernelOfABadTime) {
  core::ThreadPool pool(1);
  const auto problem = [&](double ms) {
    auto samples = make_profiles({});
    samples[4].kernels[6].ms = ms;
    const auto trained = train_operator_predictor(samples, {}, pool);
    return trained ? "" : trained.error().message;
  };
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()})
    EXPECT_THAT(problem(bad), HasSubstr("network net4: kernel 6 (conv2d): ")) << bad;
}

TEST(OperatorPredictor, RefusesSamplesThatAreNone) {
  core::ThreadPool pool(1);
  const auto problem = [&](const std::function<void(std::vector<NetworkSample>&)>& damage) {
    auto samples = make_profiles({.networks = 5});
    damage(samples);
    const auto trained = train_operator_predictor(samples, {}, pool);
    return trained ? "" : trained.error().message;
  };
  EXPECT_THAT(problem([](auto& s) { s.clear(); }), HasSubstr("no networks"));
  EXPECT_THAT(problem([](auto& s) { s.resize(2); }), HasSubstr("2 networks are too few"));
  EXPECT_THAT(problem([](auto& s) { s[1].kernels.clear(); }),
              HasSubstr("network net1: it has no kernels"));
  EXPECT_THAT(problem([](auto& s) { s[1].latency_ms = 0; }),
              HasSubstr("network net1: latency: 0 ms"));
  EXPECT_THAT(problem([](auto& s) { s[1].overhead_ms = -1; }),
              HasSubstr("network net1: its overhead"));
  EXPECT_THAT(problem([](auto& s) { s[1].kernels[0].features.values.pop_back(); }),
              HasSubstr("network net1: kernel 0 (conv2d): it has"));
  EXPECT_THAT(problem([](auto& s) { s[1].kernels[0].features.values[0] = -1; }),
              HasSubstr("feature flops is -1"));
}

TEST(OperatorPredictor, RefusesKernelsWithoutTheirFeatures) {
  const auto predictor = train(make_profiles({}));
  const auto price =
      predictor.price(std::vector{cost::KernelFeatures{.kind = "conv2d", .values = {1, 2}}});
  ASSERT_FALSE(price);
  EXPECT_THAT(price.error().message, HasSubstr("kernel 0 (conv2d): it has 2 features instead of"));
}

TEST(Methods, HaveNames) {
  EXPECT_EQ(core::parse_name<Method>("gbdt").value(), Method::boosted_trees);
  EXPECT_EQ(core::parse_name<Method>("auto").value(), Method::automatic);
  EXPECT_EQ(core::parse_name<Method>("oracle").error().message,
            "'oracle' is no method (auto, lasso, rf, gbdt, mlp, table)");
}

TEST(Methods, DenseNetworksOfAllKindsAreFittedAtOnce) {
  int calls = 0;
  const FitRegressors fit = [&](std::span<const NamedSet> sets, const core::Random&,
                                core::ThreadPool&) -> Result<std::vector<FittedRegressor>> {
    ++calls;
    std::vector<FittedRegressor> fitted;
    for (const auto& named : sets) {
      fitted.push_back(fit_lasso(named.set).value());
      fitted.back().settings = "network of " + named.name;
    }
    return fitted;
  };
  const auto predictor = train(make_profiles({}), {.method = Method::mlp, .fit_mlp = fit});
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(predictor.kinds().size(), 2u);
  for (const auto& kind : predictor.kinds()) {
    EXPECT_EQ(kind.method, "mlp");
    EXPECT_THAT(kind.settings, StartsWith("network of " + kind.kind));
  }
  EXPECT_LT(error_percent(predictor, make_profiles({.seed = 2})), 0.1);
}

TEST(Methods, CannotTrainDenseNetworksHere) {
  core::ThreadPool pool(1);
  const auto trained = train_operator_predictor(make_profiles({}), {.method = Method::mlp}, pool);
  ASSERT_FALSE(trained);
  EXPECT_EQ(trained.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace fleetfit::predict
