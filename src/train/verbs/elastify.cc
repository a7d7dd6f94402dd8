#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/core/version.h"
#include "fleetfit/elastic/bundle.h"
#include "fleetfit/elastic/expand.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/train/elastify.h"
#include "train/verbs/files.h"
#include "train/verbs/verb.h"

namespace fleetfit::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ElastifyFlags {
  CommonFlags common;
  std::string model;
  std::string data;
  std::string output;
  std::string recipe = "default";
  std::string compute = "cpu";
  elastic::ExpandOptions structure;
  ElastifyOptions learning;

  bool is_paper() const { return recipe == "paper"; }
};

/// Everything but the model and the data that the structure depends on.
std::string describe(const elastic::ExpandOptions& structure) {
  return fmt::format("granularity {}, merge {}, shrink {}", structure.granularity, structure.merge,
                     fmt::join(structure.shrink, ","));
}

Result<elastic::Supernet> make_supernet(const ElastifyFlags& flags) {
  auto imported = graph::import_model(flags.model);
  if (!imported) return tl::unexpected(std::move(imported.error()));
  auto options = flags.structure;
  options.seed = flags.common.seed;
  options.start = flags.is_paper() ? elastic::BranchStart::random : elastic::BranchStart::replaced;
  auto supernet = elastic::expand(imported->graph, options);
  if (!supernet) return core::within(flags.model, supernet.error());
  if (supernet->name.empty()) supernet->name = fs::path(flags.model).stem().string();
  return supernet;
}

Result<ElastifyOptions> options_of(const ElastifyFlags& flags) {
  const auto file = core::read_file(flags.model);
  if (!file) return tl::unexpected(file.error());
  auto options = flags.learning;
  options.seed = flags.common.seed;
  options.recipe = flags.is_paper() ? ElastifyRecipe::paper : ElastifyRecipe::standard;
  options.compute = flags.compute == "cuda" ? Compute::cuda : Compute::cpu;
  options.checkpoint = flags.output + ".training";
  options.subject = fmt::format("model {:.12}, {}, data {}", core::sha256_hex(*file),
                                describe(flags.structure), flags.data);
  return options;
}

std::size_t added_branches(const elastic::Supernet& supernet) {
  std::size_t count = 0;
  for (const auto& block : supernet.blocks) count += block.branches.size() - 1;
  return count;
}

ordered_json ranges_json(const std::vector<RangeAccuracy>& ranges) {
  auto list = ordered_json::array();
  for (const auto& range : ranges)
    list.push_back(
        {{"range", {range.low, range.high}}, {"mean", range.mean}, {"subnets", range.subnets}});
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
};

ordered_json Summary::json() const {
  ordered_json accuracy = {{"original", nullptr},
                           {"by", "multiply-accumulates, as a share of the original's"},
                           {"by_latency", ranges_json(result.by_share)},
                           {"split", "test"},
                           {"images", result.sample_images}};
  if (!result.is_interrupted) accuracy["original"] = result.original_accuracy;
  return {{"model", flags.model},
          {"data", flags.data},
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
  text += fmt::format(
      "accuracy of the original: {:.2f} %; of random subnets, by multiply-accumulates:\n",
      100 * result.original_accuracy);
  for (const auto& range : result.by_share)
    text += fmt::format("  {:3.0f} to {:3.0f} %: {:.2f} %\n", 100 * range.low, 100 * range.high,
                        100 * range.mean);
  return text + fmt::format("{} in {:.0f} s\n", flags.output, result.elapsed_s);
}

elastic::Bundle bundle_of(const ElastifyFlags& flags, const Elastified& result,
                          const data::Dataset& data) {
  const core::SystemClock clock;
  const auto created =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock.date().time_since_epoch());
  std::error_code ignored;
  return {.info = {.created_by = "fleetfit " + std::string(core::version()),
                   .created = created.count(),
                   .data = flags.data,
                   .classes = data.classes(),
                   .samples = result.samples,
                   .model_bytes = static_cast<std::int64_t>(fs::file_size(flags.model, ignored))},
          .models = {result.supernet}};
}

Status write_result(const ElastifyFlags& flags, const Elastified& result,
                    const data::Dataset& data) {
  const auto bundle = bundle_of(flags, result, data);
  if (auto written = elastic::write_bundle(bundle, flags.output); !written) return written;
  std::error_code ignored;
  const Summary summary{.flags = flags,
                        .result = result,
                        .subnets = elastic::SubnetSpace(bundle.models).size(),
                        .bundle_bytes = fs::file_size(flags.output, ignored),
                        .model_bytes = static_cast<std::uintmax_t>(bundle.info.model_bytes)};
  if (flags.common.json) {
    print(summary.json());
  } else {
    fmt::print("{}", summary.text());
  }
  return {};
}

Result<int> run_elastify(const ElastifyFlags& flags) {
  if (auto ok = check_output(flags.output); !ok) return tl::unexpected(std::move(ok.error()));
  Work work(flags.common);
  const auto supernet = make_supernet(flags);
  if (!supernet) return tl::unexpected(supernet.error());
  const auto data = open_splits(flags.data);
  if (!data) return tl::unexpected(data.error());
  const auto options = options_of(flags);
  if (!options) return tl::unexpected(options.error());
  const auto context = work.context();
  const auto result = elastify(*supernet, data->view(), *options, context);
  if (!result) return tl::unexpected(result.error());
  if (auto ok = write_result(flags, *result, *data->train); !ok)
    return tl::unexpected(std::move(ok.error()));
  if (!result->is_interrupted) {
    std::error_code ignored;
    fs::remove(*options->checkpoint, ignored);
  }
  return work.finish(fmt::format(
      "interrupted; what was learned so far is in {}, and --resume goes on", flags.output));
}

void add_structure_flags(CLI::App& verb, elastic::ExpandOptions& structure) {
  verb.add_option("--granularity", structure.granularity,
                  "Most parameters of a block, as a share of the network's")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str();
  verb.add_option("--merge", structure.merge,
                  "Most neighbours that a merged branch stands for beside the first; 0: none")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  verb.add_option("--shrink", structure.shrink, "Shares of channels that shrunk branches keep")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 0.99))
      ->capture_default_str();
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
  verb.add_option("MODEL", flags.model, "A trained network as ONNX file")->required();
  verb.add_option("--data", flags.data,
                  "fashion-mnist, idx:DIR, cifar10:DIR or images:DIR (docs/formats/datasets.md)")
      ->required();
  verb.add_option("-o,--output", flags.output, "Bundle to write (.ffb)")->required();
  add_structure_flags(verb, flags.structure);
  add_learning_flags(verb, flags.learning);
  verb.add_option("--recipe", flags.recipe, "default, or paper: AdaptiveNet's, for comparison")
      ->check(CLI::IsMember({"default", "paper"}))
      ->capture_default_str();
  verb.add_option("--compute", flags.compute, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  add_common_flags(verb, flags.common);
}

}  // namespace

void add_elastify(CLI::App& program, Action& action) {
  auto* verb = program.add_subcommand(
      "elastify", "Make a trained network elastic: one bundle with a subnet for every device");
  const auto flags = std::make_shared<ElastifyFlags>();  // shared by the verb and its action
  add_flags(*verb, *flags);
  verb->footer(
      "Example:\n  fleetfit elastify resnet20.onnx --data fashion-mnist -o resnet20.ffb\n"
      "A step of the way from fleetfit train to fleetfit adapt and fleetfit run; "
      "docs/elastic.md");
  verb->callback([&action, flags] { action = [flags] { return run_elastify(*flags); }; });
}

}  // namespace fleetfit::train
