#include "fleetfit/adapt/latency_table.h"

#include <gmock/gmock.h>

#include "adapt/branch_paths.h"
#include "fleetfit/adapt/timers.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/measure/runtime.h"
#include "small_supernet.h"

namespace fleetfit::adapt {
namespace {

using testing::HasSubstr;

/// A device on which a node takes a thousandth of a millisecond for each element of its weights and
/// outputs, and a network `overhead_ms` and `scale` times the sum.
class MadeUpTimer final : public NetworkTimer {
 public:
  double overhead_ms = 0;
  double scale = 1;
  bool tells_nodes = true;
  std::size_t networks = 0;

  Result<std::vector<NetworkTime>> time_in_turns(std::span<const graph::Graph> all) override {
    std::vector<NetworkTime> times;
    for (const auto& network : all) {
      NetworkTime& time = times.emplace_back();
      for (const auto& node : network.nodes) {
        double elements = 0;
        for (const auto id : node.inputs)
          if (network.tensor(id).is_constant())
            elements += static_cast<double>(graph::elements(*network.tensor(id).shape));
        for (const auto id : node.outputs)
          elements += static_cast<double>(graph::elements(*network.tensor(id).shape));
        time.ms += elements / 1000;
        if (tells_nodes) time.nodes.push_back({.node = node.name, .ms = elements / 1000});
      }
      time.ms = overhead_ms + scale * time.ms;
      ++networks;
    }
    return times;
  }
};

class Profiling : public testing::Test {
 protected:
  LatencyTable profile(NetworkTimer& timer, std::size_t checks = 8) {
    const auto progress = core::make_silent_progress();
    return profile_branches(models_, space_, timer, {.check_subnets = checks}, *progress).value();
  }

  /// The largest error of the table over all subnets, as a share.
  double worst_error(const LatencyTable& table, MadeUpTimer& timer) {
    double worst = 0;
    for (const auto& design : all_designs(space_)) {
      const auto path = space_.path(design);
      const double ms = timer.time(elastic::join(models_, path).value()).value().ms;
      worst = std::max(worst, std::abs(table.subnet_ms(path) / ms - 1));
    }
    return worst;
  }

  std::vector<elastic::Supernet> models_ = {small_supernet(1)};
  elastic::SubnetSpace space_{models_};
};

TEST_F(Profiling, SumsOfBranchesAreTimesOfSubnets) {
  MadeUpTimer timer;
  const auto table = profile(timer);
  EXPECT_LT(timer.networks, 14U) << "few subnets are timed";
  EXPECT_LT(worst_error(table, timer), 1e-9);
  EXPECT_LT(table.error_percent, 1e-6);
}

TEST_F(Profiling, CorrectsSumsByWholeSubnets) {
  MadeUpTimer timer;
  timer.overhead_ms = 0.3;
  timer.scale = 1.4;
  const auto table = profile(timer);
  const auto uncorrected = profile(timer, 0);
  EXPECT_LT(worst_error(table, timer), 0.02);
  EXPECT_LT(worst_error(table, timer), 0.5 * worst_error(uncorrected, timer));
}

TEST_F(Profiling, WorksWithoutTimesOfOperators) {
  MadeUpTimer timer;
  timer.tells_nodes = false;
  EXPECT_LT(worst_error(profile(timer), timer), 0.25);
}

TEST_F(Profiling, EngineAndRuntimeTellTimesOfEveryBlock) {
  const auto engine = make_engine_timer({.timing = {.rounds = 2, .round_ms = 0.1}});
  const auto runtime = measure::make_engine_runtime();
  const auto on_runtime = make_runtime_timer(*runtime, {}, {.rounds = 2, .round_ms = 0.1}).value();
  const auto network = space_.lower(space_.original()).value();
  for (NetworkTimer* timer : {static_cast<NetworkTimer*>(engine.get()), on_runtime.get()}) {
    const auto time = timer->time(network).value();
    EXPECT_GT(time.ms, 0);
    std::set<std::size_t> blocks;
    for (const auto& [node, ms] : time.nodes)
      if (const auto block = elastic::block_of(node)) blocks.insert(*block);
    EXPECT_EQ(blocks, (std::set<std::size_t>{0, 1, 2, 3, 4}));
  }
  EXPECT_FALSE(engine->new_choices().empty());
}

TEST_F(Profiling, TableFilesReadBackAndAreChecked) {
  MadeUpTimer timer;
  auto table = profile(timer);
  table.device = "board";
  const auto folder = core::ScratchFolder::create().value();
  const auto file = folder.path() / "table.json";
  ASSERT_TRUE(write_latency_table(table, file));
  const auto read = read_latency_table(file, models_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->ms, table.ms);
  EXPECT_EQ(read->device, "board");
  EXPECT_EQ(read->overhead_ms, table.overhead_ms);
  const std::vector<elastic::Supernet> longer = {small_supernet(1, 4)};
  EXPECT_THAT(read_latency_table(file, longer).error().message,
              HasSubstr("ms[0]: there are 5 blocks, the model small has 6"));
  auto text = core::read_file(file).value();
  text.replace(text.find("fleetfit-latency-table"), 22, "fleetfit-something-els");
  ASSERT_TRUE(core::write_file(file, text));
  EXPECT_THAT(read_latency_table(file, models_).error().message, HasSubstr("format"));
}

TEST(CorrectTable, BendsTheScaleAndThenTheBranchesThatDiffer) {
  // Two branches of one block; twice the time for one of them, thrice for the other.
  const LatencyTable table{.ms = {{{1.0}, {2.0, 1.0}}}};
  const std::vector<TimedSubnet> timed = {{{{0, 0, 0}, {0, 1, 0}}, 6}, {{{0, 0, 0}, {0, 1, 1}}, 5}};
  const auto corrected = correct_table(table, timed);
  EXPECT_NEAR(corrected.subnet_ms(timed[0].path), 6, 0.5);
  EXPECT_NEAR(corrected.subnet_ms(timed[1].path), 5, 0.5);
}

}  // namespace
}  // namespace fleetfit::adapt
