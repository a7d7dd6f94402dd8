#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "fleetfit/core/json.h"
#include "fleetfit/core/program.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/zoo.h"
#include "fleetfit/train/images.h"
#include "fleetfit/train/segmentation.h"
#include "train/verbs/verb.h"

namespace fleetfit::train {
namespace {

namespace fs = std::filesystem;

struct TrainFlags {
  CommonFlags common;
  std::string model;
  std::string data;
  std::string output;
  std::optional<double> width;
  std::optional<std::int64_t> image;
  bool no_flip = false;
  bool resume = false;
  ClassifierOptions training;

  bool is_file() const { return model.ends_with(".onnx") || model.find('/') != std::string::npos; }
};

/// Height and width of the network's input: as the images are, unless it was made for others.
Result<std::int64_t> image_size(const TrainFlags& flags, const data::Image& first) {
  if (flags.image) return *flags.image;
  if (first.height != first.width) {
    return refuse(fmt::format("{}: images are {} x {}; --image N stretches them to N x N",
                              flags.data, first.height, first.width));
  }
  const auto entry = std::ranges::find(graph::zoo(), flags.model, &graph::ZooEntry::name);
  if (entry != graph::zoo().end() && entry->image > 2 * first.height) {
    return refuse(fmt::format(
        "{} is made for images of {} x {}, and those of {} are {} x {}; "
        "--image N stretches them to N x N",
        flags.model, entry->image, entry->image, flags.data, first.height, first.width));
  }
  return first.height;
}

Result<graph::Graph> build_network(const TrainFlags& flags, const data::Dataset& data,
                                   const data::Item& first) {
  FLEETFIT_ASSIGN(const auto size, image_size(flags, first.image));
  return graph::build_zoo_network(flags.model,
                                  {.width = flags.width.value_or(1),
                                   .classes = static_cast<std::int64_t>(data.classes().size()),
                                   .image = size,
                                   .channels = first.image.channels,
                                   .seed = flags.common.seed});
}

Result<graph::Graph> read_network(const TrainFlags& flags) {
  if (flags.width || flags.image) {
    return refuse(fmt::format("--width and --image are for networks of the zoo, and {} is a file",
                              flags.model));
  }
  FLEETFIT_ASSIGN(auto imported, graph::import_model(flags.model));
  return std::move(imported.graph);
}

/// With a head that suits the data: where pixels have classes, a classifier's is replaced.
Result<graph::Graph> make_network(const TrainFlags& flags, const data::Dataset& data) {
  FLEETFIT_ASSIGN(const auto first, data.item(0));
  auto network = flags.is_file() ? read_network(flags) : build_network(flags, data, first);
  if (!network || first.mask.empty() || is_segmentation(*network)) return network;
  FLEETFIT_ASSIGN(
      auto joined,
      core::within(flags.model, with_segmentation_head(
                                    *network, {.classes = std::ssize(data.classes()),
                                               .height = flags.image.value_or(first.image.height),
                                               .width = flags.image.value_or(first.image.width),
                                               .seed = flags.common.seed})));
  return joined;
}

ClassifierOptions options_of(const TrainFlags& flags) {
  auto options = flags.training;
  options.seed = flags.common.seed;
  options.pretrained = flags.is_file();
  // Digits and letters, which such files mostly hold, are others the other way round.
  options.flip = !flags.no_flip && flags.data.find("idx:") == std::string::npos;
  options.checkpoint = flags.output + ".training";
  options.resume = flags.resume;
  options.title = fmt::format("{} (width {}, image {}) on {}", flags.model, flags.width.value_or(1),
                              flags.image.value_or(0), flags.data);
  return options;
}

nlohmann::ordered_json summary_json(const TrainFlags& flags, const TrainedClassifier& trained) {
  return {{"model", flags.model},
          {"data", flags.data},
          {"accuracy", core::or_null(trained.accuracy)},
          {"validation_accuracy", trained.validation_accuracy},
          {"loss", trained.loss},
          {"epochs", trained.epochs},
          {"best_epoch", trained.best_epoch},
          {"resumed_at", trained.resumed_at},
          {"images", trained.images},
          {"elapsed_s", trained.elapsed_s},
          {"interrupted", trained.interrupted},
          {"output", flags.output}};
}

std::string summary_text(const TrainFlags& flags, const TrainedClassifier& trained) {
  if (!trained.accuracy) return "";
  return fmt::format("{:.2f} % of test {} right after {} epochs in {:.0f} s: {}\n",
                     100 * *trained.accuracy, is_segmentation(trained.graph) ? "pixels" : "images",
                     trained.epochs, trained.elapsed_s, flags.output);
}

Status tell_of(const TrainFlags& flags, const TrainedClassifier& trained) {
  if (!trained.accuracy && !flags.common.trial_summary.empty()) return {};
  return tell(flags.common, summary_json(flags, trained), summary_text(flags, trained),
              {{"accuracy", trained.accuracy.value_or(0)},
               {"loss", trained.loss},
               {"epochs", trained.epochs},
               {"model", fs::absolute(flags.output).string()},
               {"elapsed_s", trained.elapsed_s}});
}

Result<int> run_train(const TrainFlags& flags) {
  if (flags.common.is_check) return core::kDone;
  FLEETFIT_TRY(check_output(flags.output));
  Work work(flags.common);
  FLEETFIT_ASSIGN(const auto data, open_splits(flags.data));
  FLEETFIT_ASSIGN(const auto network, make_network(flags, *data.train));
  const auto options = options_of(flags);
  const auto context = work.context();
  FLEETFIT_ASSIGN(
      const auto trained,
      core::within(flags.model, train_classifier(network, data.view(), options, context)));
  FLEETFIT_TRY(graph::export_onnx_file(trained.graph, flags.output));
  FLEETFIT_TRY(tell_of(flags, trained));
  if (!trained.interrupted) {
    std::error_code ignored;
    fs::remove(*options.checkpoint, ignored);
  }
  return work.finish(
      fmt::format("interrupted; the best of {} epochs is in {}, and --resume goes on",
                  trained.epochs, flags.output));
}

void add_flags(CLI::App& verb, TrainFlags& flags) {
  verb.add_option("MODEL", flags.model, "A network of the zoo, or an ONNX file to go on from")
      ->required();
  verb.add_option("--data", flags.data,
                  "fashion-mnist, idx:DIR, cifar10:DIR or images:DIR, or scenes: and one of these "
                  "(docs/formats/datasets.md)")
      ->required();
  verb.add_option("-o,--output", flags.output, "ONNX file to write")->required();
  verb.add_option("--epochs", flags.training.epochs, "Passes over the images")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  verb.add_option("--limit", flags.training.limit, "Most images to learn from; 0: all")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--width", flags.width, "Multiplies the number of channels of a zoo network")
      ->check(CLI::PositiveNumber);
  verb.add_option("--image", flags.image, "Height and width that images are stretched to")
      ->check(CLI::Range(1, 4096));
  verb.add_option("--batch", flags.training.batch, "Images in a step; 0: 128, less for few images")
      ->check(CLI::Range(0, 65'536));
  verb.add_option("--learning-rate", flags.training.learning_rate,
                  "Highest rate; 0: what suits the network")
      ->check(CLI::NonNegativeNumber);
  add_compute_flag(verb, flags.training.compute);
  verb.add_flag("--no-flip", flags.no_flip, "Never mirror images");
  verb.add_flag("--resume", flags.resume, "Go on with OUTPUT.training if it is there");
  add_common_flags(verb, flags.common);
  add_trial_flags(verb, flags.common);
}

}  // namespace

void add_train(CLI::App& program, Action& action) {
  auto* verb = program.add_subcommand("train", "Train a network on labelled images");
  const auto flags = std::make_shared<TrainFlags>();  // shared by the verb and its action
  add_flags(*verb, *flags);
  verb->footer(
      "Example:\n  fleetfit train resnet20 --data fashion-mnist --epochs 20 -o resnet20.onnx");
  verb->callback([&action, flags] { action = [flags] { return run_train(*flags); }; });
}

}  // namespace fleetfit::train
