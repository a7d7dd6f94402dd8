#include "fleetfit/train/predictors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/predict/dense_network.h"
#include "tests/train/surroundings.h"
#include "train/torch/fits.h"

namespace fleetfit::train {
namespace {

using predict::TrainingSet;
using testing::HasSubstr;

// Times that grow with a product of two features over decades; the third says nothing.
struct Law {
  std::vector<double> rows;
  std::vector<double> ms;
  std::vector<int> fold;

  explicit Law(std::size_t count, std::uint64_t seed) {
    core::Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      const double a = std::exp(random.uniform(0, 5));
      const double b = std::exp(random.uniform(0, 3));
      rows.insert(rows.end(), {a, b, random.uniform(0, 1)});
      ms.push_back(time(a, b));
      fold.push_back(static_cast<int>(i) % 2);
    }
  }

  static double time(double a, double b) { return 0.1 + 0.02 * a * b + 0.05 * b; }

  TrainingSet set() const { return {.x = {.values = rows, .columns = 3}, .y = ms}; }
  TrainingSet set_with_folds() const {
    return {.x = {.values = rows, .columns = 3}, .y = ms, .fold = fold, .folds = 2};
  }
};

double error_on_others(const predict::Regressor& model) {
  const Law others(300, 99);
  std::vector<double> predicted(others.ms.size());
  model.predict(others.set().x, predicted);
  return predict::mape_percent(predicted, others.ms);
}

TEST(Mlp, LearnsAKnownLaw) {
  Surroundings here;
  const Law law(600, 1);
  const auto trained = train_mlp(law.set(), "law", {.trials = 1, .max_epochs = 60}, here.context());
  EXPECT_LT(error_on_others(trained.value().network), 4);
  EXPECT_LT(trained->validation_percent, 4);
  EXPECT_THAT(trained->settings, HasSubstr("layers 3, neurons 128"));
  EXPECT_TRUE(trained->out_of_fold.empty());
}

TEST(Mlp, IsTheSameWhateverTheNumberOfThreads) {
  const Law law(60, 1);
  const TrainingOptions options{.seed = 5, .trials = 6, .max_weights = 20'000, .max_epochs = 22};
  Surroundings alone(1);
  Surroundings many(3);
  const auto a = train_mlp(law.set_with_folds(), "a", options, alone.context()).value();
  const auto b = train_mlp(law.set_with_folds(), "b", options, many.context()).value();
  EXPECT_EQ(a.network.to_json(), b.network.to_json());
  EXPECT_EQ(a.out_of_fold, b.out_of_fold);
  EXPECT_EQ(a.settings, b.settings);
  auto other = options;
  other.seed = 6;
  EXPECT_NE(a.network.to_json(),
            train_mlp(law.set_with_folds(), "c", other, alone.context()).value().network.to_json());
}

TEST(Mlp, PredictsAFoldWithoutHavingSeenIt) {
  Surroundings here;
  Law law(400, 1);
  for (std::size_t i = 1; i < law.ms.size(); i += 2) law.ms[i] *= 1000;  // all of fold 1
  const auto trained =
      train_mlp(law.set_with_folds(), "law", {.trials = 1, .max_epochs = 40}, here.context())
          .value();
  ASSERT_EQ(trained.out_of_fold.size(), law.ms.size());
  // By networks of the other fold, the rows of one fold are 1000 times too fast, of the other too
  // slow.
  for (std::size_t i = 0; i < law.ms.size(); ++i) {
    const double ratio = trained.out_of_fold[i] / law.ms[i];
    EXPECT_GT(i % 2 == 0 ? ratio : 1 / ratio, 50) << i;
  }
}

TEST(Mlp, GivesTheBestSoFarWhenStopped) {
  Surroundings here;
  const Law law(200, 1);
  std::stop_source stop;
  stop.request_stop();
  const auto trained = train_mlp(law.set_with_folds(), "law", {}, here.context(stop.get_token()));
  EXPECT_EQ(trained.value().ended, Ended::early);
  EXPECT_EQ(trained->epochs, 1);
  EXPECT_EQ(trained->out_of_fold.size(), 200u);
}

TEST(Mlp, KeepsToItsBudget) {
  Surroundings here;
  const Law law(200, 1);
  const auto trained =
      train_mlp(law.set(), "law", {.budget = std::chrono::nanoseconds(1)}, here.context());
  EXPECT_EQ(trained.value().ended, Ended::early);
}

TEST(Mlp, KnowsAtLeastTheTimeOfASingleRow) {
  Surroundings here;
  const std::vector<double> row{3, 4};
  const std::vector<double> ms{2.5};
  const auto trained = train_mlp({.x = {.values = row, .columns = 2}, .y = ms}, "one",
                                 {.trials = 1, .max_epochs = 30}, here.context());
  EXPECT_NEAR(trained.value().network.predict_one(row), 2.5, 0.1);
}

TEST(Mlp, RefusesRowsThatAreNone) {
  Surroundings here;
  const std::vector<double> rows{1, 2, 3, NAN};
  const std::vector<double> ms{1, 2};
  const std::vector<double> bad_ms{1, -2};
  const auto error = [&](const TrainingSet& set) {
    return train_mlp(set, "rows", {}, here.context()).error().message;
  };
  EXPECT_THAT(error({}), HasSubstr("no rows"));
  EXPECT_THAT(error({.x = {.values = rows, .columns = 2}, .y = ms}), HasSubstr("row 1"));
  EXPECT_THAT(error({.x = {.values = std::span(rows).first(2), .columns = 1}, .y = bad_ms}),
              HasSubstr("-2"));
  EXPECT_THAT(error({.x = {.values = std::span(rows).first(3), .columns = 2}, .y = ms}),
              HasSubstr("do not fit together"));
}

TEST(Mlp, AtWorkGivesWhatLibtorchGives) {
  core::Random random(11);
  DenseFitData data{.features = 7, .output = {.min = 1e-30, .max = 1e30}};
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 7; ++j)
      data.training.rows.push_back(static_cast<float>(random.uniform(-2, 2)));
    data.training.targets.slope.push_back(1);
    data.training.targets.offset.push_back(static_cast<float>(random.uniform(-9, -3)));
    data.training.targets.ms.push_back(1);
  }
  data.validation = data.training;
  const auto rows = data.training.rows;
  use_one_thread_per_fit();
  const auto fit = make_dense_fit(data, {.layers = 4, .width = 65}, core::Random(2));
  for (int epoch = 0; epoch < 20; ++epoch) fit->run_epoch(1e-3);
  fit->keep();
  const auto torch = fit->outputs(rows);

  const auto network = predict::DenseNetwork::make({.inputs = {.mean = std::vector<double>(7),
                                                               .scale = std::vector(7, 1.0)},
                                                    .layers = fit->layers(),
                                                    .output = data.output})
                           .value();
  const std::vector<double> wide(rows.begin(), rows.end());
  std::vector<double> ours(40);
  network.predict({.values = wide, .columns = 7}, ours);
  ASSERT_GT(*std::min_element(ours.begin(), ours.end()), 0.1) << "where clamping does nothing";
  for (std::size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], static_cast<double>(torch[i]), 1e-5 * std::abs(ours[i])) << i;
}

TEST(Mlp, IsFittedByTheProgramBeside) {
  const Law law(100, 1);
  core::ThreadPool pool(1);
  const auto fit = predict::fit_mlp({.trials = 1});
  const predict::NamedSet set{.name = "law", .set = law.set_with_folds()};
  const auto fitted = fit(std::span(&set, 1), core::Random(1), pool);
  ASSERT_TRUE(fitted) << fitted.error().message;
  ASSERT_EQ(fitted->size(), 1u);
  EXPECT_EQ(fitted->front().out_of_fold.size(), 100u);
  EXPECT_LT(predict::mape_percent(fitted->front().out_of_fold, law.ms), 40);
  EXPECT_LT(error_on_others(*fitted->front().model), 40);
}

TEST(Mlp, OfSeveralSetsIsTheSameWhateverTheNumberOfThreads) {
  const Law small(60, 1);
  const Law large(100, 2);
  const std::vector<predict::NamedSet> sets{{.name = "small", .set = small.set_with_folds()},
                                            {.name = "large", .set = large.set_with_folds()}};
  const auto fit = predict::fit_mlp({.trials = 1});
  std::vector<std::vector<double>> out_of_fold;
  for (const int threads : {1, 3}) {
    core::ThreadPool pool(threads);
    const auto fitted = fit(sets, core::Random(1), pool);
    ASSERT_TRUE(fitted) << fitted.error().message;
    ASSERT_EQ(fitted->size(), 2u);
    EXPECT_EQ((*fitted)[0].out_of_fold.size(), 60u);
    EXPECT_EQ((*fitted)[1].out_of_fold.size(), 100u);
    for (const auto& one : *fitted) out_of_fold.push_back(one.out_of_fold);
  }
  EXPECT_EQ(out_of_fold[0], out_of_fold[2]);
  EXPECT_EQ(out_of_fold[1], out_of_fold[3]);
}

TEST(Mlp, NamesTheSetThatIsNone) {
  const Law law(60, 1);
  const std::vector<double> times(60, -1.0);
  auto set = law.set_with_folds();
  set.y = times;
  const predict::NamedSet named{.name = "conv2d 3", .set = set};
  core::ThreadPool pool(1);
  const auto fitted = predict::fit_mlp({})(std::span(&named, 1), core::Random(1), pool);
  ASSERT_FALSE(fitted);
  EXPECT_EQ(fitted.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(fitted.error().message, HasSubstr("conv2d 3"));
}

}  // namespace
}  // namespace fleetfit::train
