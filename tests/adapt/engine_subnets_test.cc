#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "fleetfit/adapt/prepared_subnet.h"
#include "fleetfit/adapt/serving.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/graph/evaluate.h"
#include "tests/elastic/conv_supernet.h"

namespace fleetfit::adapt {
namespace {

class EngineSubnets : public testing::Test {
 protected:
  /// What the interpreter, which is not the engine, makes of the subnet.
  std::vector<float> expected(const std::string& subnet) {
    const auto network = elastic::join(models, space.path(space.parse(subnet).value())).value();
    const graph::Value value{.dtype = graph::DType::f32,
                             .shape = {1, 2, 4, 4},
                             .data = graph::TensorData::copy(input),
                             .quantization = {}};
    const auto outputs = graph::evaluate(network, std::vector{value}).value();
    const auto scores = outputs[0].data.as<float>();
    return {scores.begin(), scores.end()};
  }

  void SetUp() override {
    input.resize(32);
    std::iota(input.begin(), input.end(), -16.0F);
    for (auto& value : input) value /= 16;
  }

  std::vector<elastic::Supernet> models = {elastic::conv_supernet()};
  elastic::SubnetSpace space{models};
  std::unique_ptr<SubnetPreparer> preparer =
      make_engine_preparer(models, space, {.choosing = engine::Choosing::fixed});
  std::vector<float> input;
};

TEST_F(EngineSubnets, ComputeWhatTheJoinedNetworkComputes) {
  for (const std::string text : {"o-o", "s1-s2", "m1"}) {
    const auto subnet = preparer->prepare(text);
    ASSERT_TRUE(subnet) << subnet.error().message;
    EXPECT_EQ((*subnet)->input_shape(), (std::vector<std::int64_t>{1, 2, 4, 4}));
    EXPECT_EQ((*subnet)->output_shape(), (std::vector<std::int64_t>{1, 3}));
    EXPECT_GT((*subnet)->bytes(), 0u);
    ASSERT_TRUE((*subnet)->run(input));
    const auto scores = (*subnet)->output();
    const auto wanted = expected(text);
    ASSERT_EQ(scores.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(scores[i], wanted[i], 1e-4) << text;
  }
}

TEST_F(EngineSubnets, RefuseTextsAndInputsThatDoNotFit) {
  const auto unknown = preparer->prepare("o-x");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_input);
  EXPECT_NE(unknown.error().message.find("o-x"), std::string::npos);
  const auto subnet = preparer->prepare("o-o").value();
  EXPECT_FALSE(subnet->run(std::vector<float>(31)));
}

/// A clock on which everything takes `step`.
class TickingClock final : public core::Clock {
 public:
  std::chrono::nanoseconds now() const override { return time_ += step; }
  std::chrono::system_clock::time_point date() const override { return {}; }

  std::chrono::nanoseconds step{0};

 private:
  mutable std::chrono::nanoseconds time_{0};
};

TEST_F(EngineSubnets, GiveRightAnswersWhileTheyAreSwitched) {
  using namespace std::chrono_literals;
  SubnetPool pool;
  pool.entries = {{.subnet = "m1", .latency_ms = 1, .accuracy = 0.5},
                  {.subnet = "o-o", .latency_ms = 2, .accuracy = 0.9}};
  TickingClock clock;
  const ServerOptions options{.budget_ms = 2.5,
                              .switching = {.up_after_ms = 0, .taken_back_ms = 0}};
  const auto server = SubnetServer::start(pool, *preparer, clock, options).value();
  std::map<std::string, int> served;
  for (const auto step : {1ms, 3ms, 1ms, 3ms, 1ms}) {
    clock.step = step;
    for (int i = 0; i < 40; ++i) {
      const auto answer = server->serve(input).value();
      ++served[answer.subnet];
      const auto wanted = expected(answer.subnet);
      for (std::size_t k = 0; k < wanted.size(); ++k)
        ASSERT_NEAR(answer.scores[k], wanted[k], 1e-4) << answer.subnet;
    }
  }
  EXPECT_EQ(server->report().switches, 4u);
  EXPECT_GT(served["m1"], 40);
  EXPECT_GT(served["o-o"], 40);
}

}  // namespace
}  // namespace fleetfit::adapt
