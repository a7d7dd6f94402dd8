#include "fleetfit/app/sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "fleetfit/app/devices.h"
#include "fleetfit/app/searching.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/predict/network_predictor.h"
#include "tests/core/recording_progress.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::app {
namespace {

class Sources : public testing::Test {
 protected:
  void SetUp() override { workplace_.emplace(open_workplace("memory:", clock_).value()); }

  const space::Space& space() const { return *space::find_space("nasbench201").value(); }

  SourceOptions options() const {
    return {.protocol = {.target = 1, .min_time_s = 0, .max_time_s = 0.01, .request_ms = 1}};
  }

  Result<OpenedSource> open(const std::string& text, Quantity quantity = Quantity::latency_ms) {
    return open_source({space(), *workplace_, progress_}, text, quantity, options());
  }

  std::string write(const std::string& name, const std::string& content) {
    const auto path = folder_.path() / name;
    EXPECT_TRUE(core::write_file(path, content));
    return path.string();
  }

  std::vector<double> ask(const OpenedSource& opened, std::initializer_list<const char*> texts) {
    space::Population designs(space().genes().size());
    for (const auto* text : texts) designs.add(space().parse(text).value());
    std::vector<double> out(designs.size());
    EXPECT_TRUE(opened.source->evaluate(designs, out));
    return out;
  }

  core::SystemClock clock_;
  core::RecordingProgress progress_;
  core::TemporaryFolder folder_;
  std::optional<Workplace> workplace_;
};

TEST_F(Sources, ATableGivesItsColumnAndNanElsewhere) {
  const auto file = write("t.csv", "ops,a,b\n000000,1,2\n111111,,4\n");
  const auto opened = open("table:" + file + "#b").value();
  const auto numbers = ask(opened, {"111111", "000000", "222222"});
  EXPECT_EQ(numbers[0], 4);
  EXPECT_EQ(numbers[1], 2);
  EXPECT_TRUE(std::isnan(numbers[2]));
  EXPECT_TRUE(opened.is_measured);
  EXPECT_EQ(opened.designs->size(), 2U);
  EXPECT_EQ(open("table:" + file + "#a")->designs->size(), 1U);  // one cell is empty
}

/// Gives each design the sum of its choices.
class SumOfChoices final : public space::Source {
 public:
  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    for (std::size_t i = 0; i < designs.size(); ++i) {
      out[i] = 0;
      for (const auto choice : designs[i]) out[i] += choice;
    }
    return {};
  }
};

TEST_F(Sources, TheCallersOwnAreFoundByTheirName) {
  const SumOfChoices sum;
  auto with_own = options();
  with_own.own["sum"] = &sum;
  const SourcePlace place{space(), *workplace_, progress_};
  const auto opened = open_source(place, "own:sum", Quantity::latency_ms, with_own).value();
  EXPECT_EQ(ask(opened, {"000000", "123400"}), (std::vector<double>{0, 10}));
  EXPECT_EQ(open_source(place, "own:other", Quantity::latency_ms, with_own).error().code,
            ErrorCode::not_found);
}

TEST_F(Sources, OnlyAccuraciesMayBeNegative) {
  const auto file = write("t.csv", "ops,a\n000000,-1\n");
  EXPECT_FALSE(open("table:" + file + "#a"));
  EXPECT_TRUE(open("table:" + file + "#a", Quantity::accuracy));
}

TEST_F(Sources, AreRefusedWithTheirText) {
  for (const std::string text : {"", "table", "table:", "table:x.csv", "table:#a", "table:x.csv#",
                                 "predictor:", "guess:x", "device:nowhere"}) {
    const auto opened = open(text);
    ASSERT_FALSE(opened) << text;
    EXPECT_TRUE(opened.error().message.starts_with(text)) << opened.error().message;
  }
  EXPECT_NE(open("device:local", Quantity::accuracy).error().message.find("accuracy"),
            std::string::npos);
}

TEST_F(Sources, APredictorOfNetworksPricesTheSpacesEncoding) {
  const std::size_t encoding = space().find_encoding("one-hot").value();
  std::vector<double> weights(space().encodings()[encoding].features.size(), 0.0);
  weights[2] = 5;  // the third choice of the first slot
  const predict::NetworkPredictor predictor(
      {.identity = {.device = "phone"},
       .space = "nasbench201",
       .encoding = "one-hot",
       .model = std::make_unique<predict::LinearModel>(1, weights),
       .least_ms = 0.1});
  const auto file = write("p.json", core::format_json(predictor.to_json()));
  const auto opened = open("predictor:" + file).value();
  EXPECT_EQ(ask(opened, {"000000", "200000"}), (std::vector<double>{1, 6}));
  EXPECT_FALSE(opened.is_measured);

  const auto& other = *space::find_space("fbnet").value();
  const auto refused = open_source({other, *workplace_, progress_}, "predictor:" + file,
                                   Quantity::latency_ms, options());
  EXPECT_NE(refused.error().message.find("nasbench201, not for fbnet"), std::string::npos);
}

TEST_F(Sources, ADeviceMeasuresADesignOnce) {
  ASSERT_TRUE(
      add_device(*workplace_, {.name = "fake", .runtime = std::string("exec:") + FAKE_RUNTIME}));
  const auto opened = open("device:fake").value();
  const auto first = ask(opened, {"111111", "222222"});
  EXPECT_GT(first[0], 0);
  EXPECT_EQ(opened.spent().measurements, 2U);
  EXPECT_EQ(ask(opened, {"222222", "111111"}), (std::vector<double>{first[1], first[0]}));
  EXPECT_EQ(opened.spent().measurements, 2U);
  EXPECT_GT(opened.spent().machine_s, 0);
}

TEST_F(Sources, APredictorOfKernelsHasNoEnergy) {
  const auto file = write("p.json", R"({"type": "roofline"})");
  const auto refused = open("predictor:" + file, Quantity::energy_mj);
  EXPECT_NE(refused.error().message.find("not energy_mj"), std::string::npos);
}

TEST_F(Sources, ADeviceThatIsStoppedGivesNoNumberForTheRest) {
  ASSERT_TRUE(
      add_device(*workplace_, {.name = "fake", .runtime = std::string("exec:") + FAKE_RUNTIME}));
  std::stop_source stop;
  const auto opened = open_source({space(), *workplace_, progress_, stop.get_token()},
                                  "device:fake", Quantity::latency_ms, options())
                          .value();
  EXPECT_GT(ask(opened, {"111111"})[0], 0);
  stop.request_stop();
  const auto numbers = ask(opened, {"111111", "222222"});
  EXPECT_GT(numbers[0], 0);  // the store knows it
  EXPECT_TRUE(std::isnan(numbers[1]));
}

TEST_F(Sources, AFittedOneLearnsWhatDesignsAreWorth) {
  std::string table = "ops,top1\n";
  const auto worth = [](space::Design d) { return 60.0 + 2.0 * d[0] + d[1]; };
  const auto designs = space::sample_designs(space(), {.count = 60}).value();
  for (std::size_t i = 0; i < designs.size(); ++i)
    table +=
        space().format(designs.batch()[i]) + "," + std::to_string(worth(designs.batch()[i])) + "\n";
  const auto opened = open("fitted:" + write("f.csv", table) + "#top1", Quantity::accuracy);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_GT(opened->rank_correlation.value(), 0.95);
  EXPECT_FALSE(opened->designs);  // knows all
  EXPECT_NEAR(ask(*opened, {"430000"})[0], 71, 0.5);
}

TEST_F(Sources, AFittedOneNeedsDesignsThatDiffer) {
  const auto few = write("few.csv", "ops,a\n000000,1\n111111,2\n");
  EXPECT_NE(open("fitted:" + few + "#a").error().message.find("too few"), std::string::npos);
  std::string equal = "ops,a\n";
  const auto designs = space::sample_designs(space(), {.count = 20}).value();
  for (std::size_t i = 0; i < designs.size(); ++i)
    equal += space().format(designs.batch()[i]) + ",3\n";
  EXPECT_NE(open("fitted:" + write("equal.csv", equal) + "#a").error().message.find("nothing to"),
            std::string::npos);
}

TEST_F(Sources, ADeviceIsSearchedByWayOfAProxy) {
  ASSERT_TRUE(
      add_device(*workplace_, {.name = "fake", .runtime = std::string("exec:") + FAKE_RUNTIME}));
  std::string table = "ops,ms,top1\n";
  const auto designs = space::sample_designs(space(), {.count = 30}).value();
  for (std::size_t i = 0; i < designs.size(); ++i) {
    const double convolutions =
        static_cast<double>(std::ranges::count(designs.batch()[i], space::Choice{3}));
    table += space().format(designs.batch()[i]) + "," + std::to_string(1 + convolutions) + "," +
             std::to_string(70 + convolutions) + "\n";
  }
  const auto file = write("proxy.csv", table);
  BisectRequest request{.space = "nasbench201",
                        .accuracy = "table:" + file + "#top1",
                        .proxy = {.source = "table:" + file + "#ms"},
                        .target = {.source = "device:fake", .budget = 1000},
                        .max_measurements = 3,
                        .sources = options()};
  const auto report = bisect_on_device(*workplace_, request, progress_, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->result.best);
  EXPECT_LE(report->result.measurements, 3U);
  EXPECT_TRUE(report->machine_s_is_measured);
  EXPECT_EQ(workplace_->store->list_measurements({.operators = false})->size(),
            report->result.measurements);
}

}  // namespace
}  // namespace fleetfit::app
