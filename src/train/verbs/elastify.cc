#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "fleetfit/core/file.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/core/version.h"
#include "fleetfit/elastic/bundle.h"
#include "fleetfit/elastic/expand.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/train/elastify.h"
#include "train/verbs/verb.h"

namespace fleetfit::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ElastifyFlags {
  CommonFlags common;
  std::string model;
  std::string data;
  std::string then;  // the data of the task, if the model was trained on two
  std::string output;
  std::string recipe = "default";
  elastic::ExpandOptions structure;
  ElastifyOptions learning;

  std::vector<const CLI::Option*> structure_options;

  bool is_paper() const { return recipe == "paper"; }
  bool is_bundle() const { return model.ends_with(".ffb"); }
  std::string all_data() const { return then.empty() ? data : data + ", then " + then; }
};

/// What learns, and what is known of its model.
struct Subject {
  elastic::Supernet supernet;
  std::int64_t model_bytes = 0;
};

/// Everything but the model and the data that the structure depends on.
std::string describe(const elastic::ExpandOptions& structure) {
  return fmt::format("granularity {}, merge {}, shrink {}, merge-shrink {}", structure.granularity,
                     structure.merge, fmt::join(structure.shrink, ","), structure.merge_shrink);
}

/// The branches that are there, trained or not.
Result<Subject> read_subject(const ElastifyFlags& flags) {
  for (const auto* option : flags.structure_options) {
    if (option->count() == 0) continue;
    return refuse(fmt::format("{} is for models; the branches of {} are there already",
                              option->get_name(), flags.model));
  }
  FLEETFIT_ASSIGN(auto bundle, elastic::read_bundle(flags.model));
  if (bundle.models.size() != 1)
    return refuse(fmt::format("{} holds {} models; one can learn at a time", flags.model,
                              bundle.models.size()));
  return Subject{.supernet = std::move(bundle.models.front()),
                 .model_bytes = bundle.info.model_bytes};
}

/// The paper's branches start at random, and are merged or shrunk, never both.
elastic::ExpandOptions structure_of(const ElastifyFlags& flags) {
  auto options = flags.structure;
  options.seed = flags.common.seed;
  if (!flags.is_paper()) return options;
  options.start = elastic::BranchStart::random;
  options.merge_shrink = 1;
  return options;
}

Result<Subject> make_subject(const ElastifyFlags& flags) {
  if (flags.is_bundle()) return read_subject(flags);
  FLEETFIT_ASSIGN(auto imported, graph::import_model(flags.model));
  FLEETFIT_ASSIGN(auto supernet,
                  core::within(flags.model, elastic::expand(imported.graph, structure_of(flags))));
  if (supernet.name.empty()) supernet.name = fs::path(flags.model).stem().string();
  std::error_code ignored;
  return Subject{.supernet = std::move(supernet),
                 .model_bytes = static_cast<std::int64_t>(fs::file_size(flags.model, ignored))};
}

Result<ElastifyOptions> options_of(const ElastifyFlags& flags) {
  FLEETFIT_ASSIGN(const auto file, core::read_file(flags.model));
  auto options = flags.learning;
  options.seed = flags.common.seed;
  options.recipe = flags.is_paper() ? ElastifyRecipe::paper : ElastifyRecipe::standard;
  options.checkpoint = flags.output + ".training";
  options.subject = fmt::format("model {:.12}, {}, data {}", core::sha256_hex(file),
                                flags.is_bundle() ? "its branches" : describe(structure_of(flags)),
                                flags.all_data());
  return options;
}

std::size_t added_branches(const elastic::Supernet& supernet) {
  std::size_t count = 0;
  for (const auto& block : supernet.blocks) count += block.branches.size() - 1;
  return count;
}

ordered_json ranges_json(const std::vector<RangeAccuracy>& ranges) {
  auto list = ordered_json::array();
  for (const auto& range : ranges) {
    list.push_back(
        {{"range", {range.low, range.high}}, {"mean", range.mean}, {"subnets", range.subnets}});
    if (range.mean_iou) list.back()["mean_iou"] = *range.mean_iou;
  }
  return list;
}

ordered_json epochs_json(const Elastified& result) {
  auto list = ordered_json::array();
  for (const auto& epoch : result.epochs)
    list.push_back({{"stage", epoch.stage},
                    {"epoch", epoch.epoch},
                    {"loss", epoch.loss},
                    {"validation", ranges_json(epoch.validation)}});
  return list;
}

ordered_json subnets_json(const space::DesignCount& count) {
  if (const auto exact = count.exact()) return *exact;
  return count.approximate();
}

/// What was made, for people and for programs.
struct Summary {
  const ElastifyFlags& flags;
  const Elastified& result;
  space::DesignCount subnets;
  std::uintmax_t bundle_bytes = 0;
  std::uintmax_t model_bytes = 0;

  ordered_json json() const;
  std::string text() const;
  nlohmann::json result_of_trial() const;
};

ordered_json Summary::json() const {
  ordered_json accuracy = {{"original", nullptr},
                           {"by", "multiply-accumulates, as a share of the original's"},
                           {"by_latency", ranges_json(result.by_share)},
                           {"split", "test"},
                           {"images", result.sample_images}};
  if (!result.is_interrupted) accuracy["original"] = result.original_accuracy;
  if (result.original_mean_iou) accuracy["original_mean_iou"] = *result.original_mean_iou;
  return {{"model", flags.model},
          {"data", flags.data},
          {"then", flags.then.empty() ? ordered_json() : ordered_json(flags.then)},
          {"recipe", flags.recipe},
          {"blocks", result.supernet.blocks.size()},
          {"branches", added_branches(result.supernet)},
          {"subnets", subnets_json(subnets)},
          {"bundle_bytes", bundle_bytes},
          {"model_bytes", model_bytes},
          {"accuracy", std::move(accuracy)},
          {"epochs", epochs_json(result)},
          {"elapsed_s", result.elapsed_s},
          {"interrupted", result.is_interrupted},
          {"output", flags.output}};
}

std::string Summary::text() const {
  auto text =
      fmt::format("{} blocks, {} branches beside them, {} subnets; {:.2f} times the model's size\n",
                  result.supernet.blocks.size(), added_branches(result.supernet), subnets.decimal(),
                  static_cast<double>(bundle_bytes) / static_cast<double>(model_bytes));
  if (result.is_interrupted) return text;
  const auto iou = [](const std::optional<double>& mean) {
    return mean ? fmt::format(", mean IoU {:.2f} %", 100 * *mean) : std::string();
  };
  text += fmt::format(
      "accuracy of the original: {:.2f} %{}; of random subnets, by multiply-accumulates:\n",
      100 * result.original_accuracy, iou(result.original_mean_iou));
  for (const auto& range : result.by_share)
    text += fmt::format("  {:3.0f} to {:3.0f} %: {:.2f} %{}\n", 100 * range.low, 100 * range.high,
                        100 * range.mean, iou(range.mean_iou));
  return text + fmt::format("{} in {:.0f} s\n", flags.output, result.elapsed_s);
}

/// The accuracy is that of subnets, as they are what the work was for.
nlohmann::json Summary::result_of_trial() const {
  double sum = 0;
  for (const auto& range : result.by_share) sum += range.mean;
  const auto ranges = static_cast<double>(std::max<std::size_t>(result.by_share.size(), 1));
  return {{"accuracy", sum / ranges},
          {"original_accuracy", result.original_accuracy},
          {"elapsed_s", result.elapsed_s}};
}

elastic::Bundle bundle_of(const ElastifyFlags& flags, const Elastified& result,
                          std::vector<std::string> classes, std::int64_t model_bytes) {
  const core::SystemClock clock;
  const auto created =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock.date().time_since_epoch());
  return {.info = {.created_by = "fleetfit " + std::string(core::version()),
                   .created = created.count(),
                   .data = flags.all_data(),
                   .classes = std::move(classes),
                   .samples = result.samples,
                   .model_bytes = model_bytes},
          .models = {result.supernet}};
}

Status write_result(const ElastifyFlags& flags, const Elastified& result,
                    const elastic::Bundle& bundle) {
  FLEETFIT_TRY(elastic::write_bundle(bundle, flags.output));
  std::error_code ignored;
  const Summary summary{.flags = flags,
                        .result = result,
                        .subnets = elastic::SubnetSpace(bundle.models).size(),
                        .bundle_bytes = fs::file_size(flags.output, ignored),
                        .model_bytes = static_cast<std::uintmax_t>(bundle.info.model_bytes)};
  if (result.is_interrupted && !flags.common.trial_summary.empty()) return {};
  return tell(flags.common, summary.json(), summary.text(), summary.result_of_trial());
}

Result<int> run_elastify(const ElastifyFlags& flags) {
  if (flags.common.is_check) return core::kDone;
  FLEETFIT_TRY(check_output(flags.output));
  Work work(flags.common);
  FLEETFIT_ASSIGN(const auto subject, make_subject(flags));
  FLEETFIT_ASSIGN(const auto data, open_splits(flags.then.empty() ? flags.data : flags.then));
  FLEETFIT_ASSIGN(auto options, options_of(flags));
  std::unique_ptr<data::Dataset> first_data;
  if (!flags.then.empty()) {
    FLEETFIT_ASSIGN(first_data, data::open_dataset(flags.data, data::Split::train));
    options.first_data = first_data.get();
  }
  const auto context = work.context();
  FLEETFIT_ASSIGN(const auto result, elastify(subject.supernet, data.view(), options, context));
  const auto bundle = bundle_of(flags, result, data.train->classes(), subject.model_bytes);
  FLEETFIT_TRY(write_result(flags, result, bundle));
  if (!result.is_interrupted) {
    std::error_code ignored;
    fs::remove(*options.checkpoint, ignored);
  }
  return work.finish(fmt::format(
      "interrupted; what was learned so far is in {}, and --resume goes on", flags.output));
}

std::vector<const CLI::Option*> add_structure_flags(CLI::App& verb,
                                                    elastic::ExpandOptions& structure) {
  return {
      verb.add_option("--granularity", structure.granularity,
                      "Most parameters of a block, as a share of the network's")
          ->check(CLI::Range(1e-6, 1.0))
          ->capture_default_str(),
      verb.add_option("--merge", structure.merge,
                      "Most neighbours that a merged branch stands for beside the first; 0: none")
          ->check(CLI::Range(0, 64))
          ->capture_default_str(),
      verb.add_option("--shrink", structure.shrink, "Shares of channels that shrunk branches keep")
          ->delimiter(',')
          ->check(CLI::Range(0.01, 0.99))
          ->capture_default_str(),
      verb.add_option("--merge-shrink", structure.merge_shrink,
                      "Share of channels that a second branch for the most blocks keeps; 1: none")
          ->check(CLI::Range(0.01, 1.0))
          ->capture_default_str()};
}

void add_learning_flags(CLI::App& verb, ElastifyOptions& learning) {
  verb.add_option("--distill-epochs", learning.distill_epochs,
                  "Passes over the images in which branches learn the original's features")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  verb.add_option("--tune-epochs", learning.tune_epochs,
                  "Passes in which subnets learn the classes")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  verb.add_option("--distill-rate", learning.distill_rate, "Highest learning rate of the first")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("--tune-rate", learning.tune_rate, "Highest learning rate of the second")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("--limit", learning.limit, "Most images to learn from; 0: all")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--batch", learning.batch, "Images in a step")
      ->check(CLI::Range(2, 65'536))
      ->capture_default_str();
  verb.add_flag("--resume", learning.resume, "Go on with OUTPUT.training if it is there");
}

void add_flags(CLI::App& verb, ElastifyFlags& flags) {
  verb.add_option("MODEL", flags.model,
                  "A trained network as ONNX file, or a bundle (.ffb) whose branches are to learn")
      ->required();
  verb.add_option("--data", flags.data,
                  "fashion-mnist, idx:DIR, cifar10:DIR or images:DIR, or scenes: and one of these "
                  "(docs/formats/datasets.md)")
      ->required();
  verb.add_option("--then", flags.then,
                  "The data of the task, of a network that was trained on --data first: branches "
                  "learn features from --data, and to work together from this");
  verb.add_option("-o,--output", flags.output, "Bundle to write (.ffb)")->required();
  flags.structure_options = add_structure_flags(verb, flags.structure);
  add_learning_flags(verb, flags.learning);
  verb.add_option("--recipe", flags.recipe, "default, or paper: AdaptiveNet's, for comparison")
      ->check(CLI::IsMember({"default", "paper"}))
      ->capture_default_str();
  add_compute_flag(verb, flags.learning.compute);
  add_common_flags(verb, flags.common);
  add_trial_flags(verb, flags.common);
}

}  // namespace

void add_elastify(CLI::App& program, Action& action) {
  auto* verb = program.add_subcommand(
      "elastify", "Make a trained network elastic: one bundle with a subnet for every device");
  const auto flags = std::make_shared<ElastifyFlags>();  // shared by the verb and its action
  add_flags(*verb, *flags);
  verb->footer(
      "Examples:\n  fleetfit elastify resnet20.onnx --data fashion-mnist -o resnet20.ffb\n"
      "  fleetfit elastify segmenter.onnx --data fashion-mnist --then scenes:fashion-mnist -o "
      "s.ffb\n"
      "With --executor slurm it is a job of a cluster (docs/slurm.md); with --executor local or\n"
      "--store it runs here, and the store keeps its progress, time and energy.\n"
      "A step of the way from fleetfit train to fleetfit adapt and fleetfit run; "
      "docs/elastic.md");
  verb->callback([&action, flags] { action = [flags] { return run_elastify(*flags); }; });
}

}  // namespace fleetfit::train
