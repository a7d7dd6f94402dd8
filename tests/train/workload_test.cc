#include "fleetfit/train/workload.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "fleetfit/core/file.h"
#include "fleetfit/graph/import.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/sound_files.h"
#include "tests/train/surroundings.h"

namespace fleetfit::train {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// Big-endian.
std::string extent(std::uint32_t value) {
  auto bytes = data::number(value, 4);
  return {bytes.rbegin(), bytes.rend()};
}

/// Images of 16 x 16 in MNIST's format: a bright bar, upright (class 0) or lying (class 1).
void write_bars(const core::TemporaryFolder& folder) {
  for (const auto& [name, count] : {std::pair("train", 120U), {"t10k", 10U}}) {
    std::string images = std::string("\0\0\10\3", 4) + extent(count) + extent(16) + extent(16);
    std::string labels = std::string("\0\0\10\1", 4) + extent(count);
    for (unsigned i = 0; i < count; ++i) {
      const auto place = 3 + i / 2 % 10;
      for (unsigned pixel = 0; pixel < 256; ++pixel) {
        const auto line = i % 2 == 0 ? pixel % 16 : pixel / 16;
        images += static_cast<char>(line / 2 == place / 2 ? 200 : 0);
      }
      labels += static_cast<char>(i % 2);
    }
    folder.file(std::string(name) + "-images-idx3-ubyte", images);
    folder.file(std::string(name) + "-labels-idx1-ubyte", labels);
  }
}

/// Tones, high or low.
std::string tones() {
  std::string tar;
  for (int i = 0; i < 120; ++i) {
    std::vector<std::int16_t> samples;
    const double hertz = i % 2 == 0 ? 300 + i : 1500 + i;
    for (int t = 0; t < 1200; ++t)
      samples.push_back(
          static_cast<std::int16_t>(8000 * std::sin(2 * std::numbers::pi * hertz * t / 8000.0)));
    tar += data::tar_member(fmt::format("{}_x_{}.wav", i % 2, i + 5), data::wav_file(samples));
  }
  return tar + data::tar_end();
}

std::string news() {
  const std::vector<std::string> words{"minister war", "goal match", "shares profit",
                                       "chip software"};
  std::string text;
  for (int i = 0; i < 240; ++i)
    text += fmt::format("\"{}\",\"item {}\",\"the {} and\"\n", i % 4 + 1, i,
                        words[static_cast<std::size_t>(i % 4)]);
  return text;
}

class Workload : public ::testing::Test {
 protected:
  Result<WorkloadOutcome> run(const std::string& name, nlohmann::json params, int epochs,
                              const std::string& folder = "trial", bool resume = false) {
    params["threads"] = 1;
    const nlohmann::json document{{"params", params},
                                  {"budget", {{"epochs", epochs}, {"data_fraction", fraction_}}},
                                  {"checkpoint_dir", (folder_.path() / folder).string()},
                                  {"resume", resume}};
    const auto& workload = *workloads::find_workload(name).value();
    const auto request = workloads::read_trial(workload, document.dump());
    if (!request) return tl::unexpected(request.error());
    const WorkloadListener listener{
        .on_untrained = [&](const std::string& file) { untrained_.push_back(file); },
        .on_epoch =
            [&](const WorkloadEpoch& epoch) {
              epochs_.push_back(epoch.epoch);
              if (epoch.epoch == stop_after_) stop_.request_stop();
            }};
    return run_workload(workload, *request, listener, surroundings_.context(stop_.get_token()));
  }

  nlohmann::json bars() const {
    return {{"data", "idx:" + folder_.path().string()},
            {"width", 0.05},
            {"batch_size", 10},
            {"limit", 60},
            {"learning_rate", 0.05}};
  }
  std::string model(const std::string& folder) const {
    return core::read_file(folder_.path() / folder / "model.onnx").value();
  }

  core::TemporaryFolder folder_;
  Surroundings surroundings_;
  std::stop_source stop_;
  double fraction_ = 1;
  std::int64_t stop_after_ = -1;
  std::vector<std::string> untrained_;
  std::vector<std::int64_t> epochs_;
};

TEST_F(Workload, UntrainedNetworkIsThereBeforeTraining) {
  write_bars(folder_);
  const auto outcome = run("resnet-fashion-mnist", bars(), 0).value();
  EXPECT_TRUE(epochs_.empty());
  ASSERT_EQ(untrained_.size(), 1U);
  EXPECT_EQ(outcome.model_file, untrained_[0]);
  const auto graph = graph::import_model(outcome.model_file).value().graph;
  EXPECT_EQ(*graph.tensor(graph.inputs[0]).shape, (graph::Shape{1, 1, 16, 16}));
  EXPECT_EQ(*graph.tensor(graph.outputs[0]).shape, (graph::Shape{1, 2}));
}

TEST_F(Workload, MoreEpochsLaterAreAsGoodAsAllAtOnce) {
  write_bars(folder_);
  auto params = bars();
  params["dropout"] = 0.3;
  const auto whole = run("resnet-fashion-mnist", params, 3, "whole").value();
  EXPECT_EQ(epochs_, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(run("resnet-fashion-mnist", params, 1, "parts").value().epochs, 1);
  epochs_.clear();
  const auto rest = run("resnet-fashion-mnist", params, 3, "parts", /*resume=*/true).value();
  EXPECT_EQ(epochs_, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(rest.resumed_at, 1);
  EXPECT_EQ(rest.accuracy, whole.accuracy);
  EXPECT_EQ(model("whole"), model("parts"));
  epochs_.clear();
  EXPECT_EQ(run("resnet-fashion-mnist", params, 3, "parts", true).value().accuracy, whole.accuracy);
  EXPECT_TRUE(epochs_.empty()) << "all is done already";
}

TEST_F(Workload, GoesOnAfterAnInterruption) {
  write_bars(folder_);
  const auto whole = run("resnet-fashion-mnist", bars(), 2, "whole").value();
  stop_after_ = 1;
  const auto cut = run("resnet-fashion-mnist", bars(), 2, "cut").value();
  EXPECT_TRUE(cut.interrupted);
  EXPECT_EQ(cut.epochs, 1);
  EXPECT_FALSE(fs::exists(folder_.path() / "cut/model.onnx"));
  stop_ = std::stop_source();
  stop_after_ = -1;
  EXPECT_EQ(run("resnet-fashion-mnist", bars(), 2, "cut", true).value().accuracy, whole.accuracy);
  EXPECT_EQ(model("cut"), model("whole"));
}

TEST_F(Workload, ShareOfTheDataIsLearntFrom) {
  write_bars(folder_);
  fraction_ = 0.5;
  EXPECT_EQ(run("resnet-fashion-mnist", bars(), 1).value().samples, 30);
}

TEST_F(Workload, RefusesACheckpointOfAnotherTraining) {
  write_bars(folder_);
  ASSERT_TRUE(run("resnet-fashion-mnist", bars(), 1));
  auto other = bars();
  other["learning_rate"] = 0.01;
  EXPECT_THAT(run("resnet-fashion-mnist", other, 2, "trial", true).error().message,
              HasSubstr("is of another training"));
  folder_.file("trial/training", "rubbish");
  EXPECT_THAT(run("resnet-fashion-mnist", bars(), 2, "trial", true).error().message,
              HasSubstr("trial/training"));
}

TEST_F(Workload, TellsTonesApart) {
  const auto spec = "recordings:" + folder_.file("tones.tar", tones()).string();
  const auto outcome =
      run("m5-spoken-digits",
          {{"data", spec}, {"embedded_dim", 8}, {"length", 1200}, {"stride", 4}, {"batch_size", 8}},
          4)
          .value();
  EXPECT_GE(outcome.accuracy, 0.9);
}

TEST_F(Workload, TellsNewsApart) {
  const auto spec = "ag-news:" + folder_.file("news.csv", news()).string();
  const auto outcome = run("rnn-ag-news",
                           {{"data", spec},
                            {"length", 8},
                            {"stride", 2},
                            {"hidden", 16},
                            {"embedding", 16},
                            {"vocabulary", 100},
                            {"batch_size", 8},
                            {"learning_rate", 0.02}},
                           4)
                           .value();
  EXPECT_GE(outcome.accuracy, 0.9);
  EXPECT_THAT(core::read_file(folder_.path() / "trial/vocabulary.txt").value(),
              HasSubstr("goal\n"));
}

TEST_F(Workload, FindsThingsInScenes) {
  write_bars(folder_);
  const auto outcome = run("yolo-scenes",
                           {{"data", "scenes:idx:" + folder_.path().string()},
                            {"size", 32},
                            {"width", 0.25},
                            {"limit", 60},
                            {"batch_size", 10}},
                           1)
                           .value();
  EXPECT_GE(outcome.accuracy, 0);
  EXPECT_LE(outcome.accuracy, 1);
  const auto graph = graph::import_model(outcome.model_file).value().graph;
  EXPECT_EQ(*graph.tensor(graph.outputs[0]).shape, (graph::Shape{1, 7, 4, 4}));
  for (const auto& node : graph.nodes) EXPECT_NE(graph::type_name(node.op), "Dropout");
}

TEST_F(Workload, DataThatAreNotThereAreNamed) {
  for (const auto& [name, data] : {std::pair("m5-spoken-digits", "recordings:/none.tar"),
                                   {"rnn-ag-news", "ag-news:/none.csv"},
                                   {"resnet-cifar10", "cifar10:/none"},
                                   {"yolo-scenes", "scenes:idx:/none"}})
    EXPECT_THAT(run(name, {{"data", data}}, 1).error().message, HasSubstr("/none")) << name;
  EXPECT_THAT(run("yolo-scenes", {{"data", "fashion-mnist"}}, 1).error().message,
              HasSubstr("fashion-mnist"));
}

}  // namespace
}  // namespace fleetfit::train
