#include "train/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/interrupt.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/version.h"
#include "fleetfit/predict/training_files.h"
#include "fleetfit/train/graph_network.h"
#include "fleetfit/train/mlp.h"

namespace fleetfit::train {
namespace {

struct Flags {
  std::string samples;
  std::string output;
  bool json = false;
  bool quiet = false;
  int threads = 0;
  double budget_s = 0;
  TrainingOptions training;
};

// What all verbs need, for as long as they work.
class Work {
 public:
  explicit Work(const Flags& flags)
      : start_(clock_.now()),
        flags_(flags),
        pool_(flags.threads > 0 ? flags.threads : core::ThreadPool::available_cpus()),
        progress_(core::make_terminal_progress(clock_, {.quiet = flags.quiet || flags.json})) {}

  bool is_interrupted() const { return interrupt_.token().stop_requested(); }
  core::ThreadPool& pool() { return pool_; }
  double elapsed_s() const { return std::chrono::duration<double>(clock_.now() - start_).count(); }

  TrainingContext context() {
    return {.pool = pool_, .clock = clock_, .progress = *progress_, .stop = interrupt_.token()};
  }

  /// Of the time that is left, the share that is due to a part of the work.
  TrainingOptions options(double share) const {
    auto options = flags_.training;
    if (flags_.budget_s > 0) {
      const double left_s = std::max(flags_.budget_s - elapsed_s(), 0.0);
      options.budget = std::chrono::nanoseconds(std::llround(left_s * share * 1e9));
    }
    return options;
  }

 private:
  core::Interrupt interrupt_;  // first, so that threads inherit that they do not see signals
  core::SystemClock clock_;
  std::chrono::nanoseconds start_;
  const Flags& flags_;
  core::ThreadPool pool_;
  std::unique_ptr<core::Progress> progress_;
};

void add_flags(CLI::App& verb, Flags& flags) {
  verb.add_option("SAMPLES", flags.samples, "File of samples")->required();
  verb.add_option("-o,--output", flags.output, "File to write")->required();
  verb.add_option("--seed", flags.training.seed, "Seed of everything random")
      ->capture_default_str();
  verb.add_option("--threads", flags.threads, "Threads to use; 0: all that there are")
      ->check(CLI::Range(0, 1024));
  verb.add_option("--epochs", flags.training.max_epochs, "Most epochs of one training")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--trials", flags.training.trials, "Settings to try")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb.add_option("--max-weights", flags.training.max_weights, "Most weights of a network")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  verb.add_option("--budget-s", flags.budget_s, "Seconds after which training ends; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  verb.add_flag("--json", flags.json, "Print one JSON document and nothing else");
  verb.add_flag("--quiet", flags.quiet, "No progress on the terminal");
}

void print(const nlohmann::ordered_json& document) {
  const auto text = core::format_json(document);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int finish(const Work& work, const std::string& interrupted) {
  return work.is_interrupted() ? core::report(interrupted, core::kFailed) : core::kDone;
}

// ---- mlp

predict::TrainedModel record_of(const predict::RowSet& set, TrainedMlp trained) {
  return {.name = set.name,
          .features = set.features,
          .model = std::make_unique<predict::DenseNetwork>(std::move(trained.network)),
          .settings = std::move(trained.settings),
          .validation_percent = trained.validation_percent,
          .epochs = trained.epochs,
          .ended = std::string(to_string(trained.ended)),
          .out_of_fold = std::move(trained.out_of_fold)};
}

std::size_t rows_from(std::span<const predict::RowSet> sets) {
  std::size_t rows = 0;
  for (const auto& set : sets) rows += set.ms.size();
  return rows;
}

// The time that is left is shared by the number of rows. After an interruption, no further set is
// begun.
Result<std::vector<predict::TrainedModel>> train_all(std::span<const predict::RowSet> sets,
                                                     Work& work, const std::string& file) {
  std::vector<predict::TrainedModel> models;
  for (std::size_t i = 0; i < sets.size() && !work.is_interrupted(); ++i) {
    const auto& set = sets[i];
    const double share =
        static_cast<double>(set.ms.size()) / static_cast<double>(rows_from(sets.subspan(i)));
    auto trained = train_mlp(set.view(), set.name, work.options(share), work.context());
    if (!trained) return core::within(fmt::format("{}: {}", file, set.name), trained.error());
    models.push_back(record_of(set, *std::move(trained)));
  }
  return models;
}

nlohmann::ordered_json summary(std::span<const predict::TrainedModel> models, const Work& work) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& model : models) {
    list.push_back({{"name", model.name},
                    {"validation_percent", model.validation_percent},
                    {"epochs", model.epochs},
                    {"ended", model.ended},
                    {"settings", model.settings}});
  }
  return {{"models", std::move(list)},
          {"elapsed_s", work.elapsed_s()},
          {"interrupted", work.is_interrupted()}};
}

Result<int> run_mlp(const Flags& flags) {
  const auto sets = predict::read_row_sets(flags.samples);
  if (!sets) return tl::unexpected(sets.error());
  if (sets->empty()) return fail(ErrorCode::invalid_input, flags.samples + ": there are no sets");
  Work work(flags);
  const auto models = train_all(*sets, work, flags.samples);
  if (!models) return tl::unexpected(models.error());
  if (auto written = predict::write_trained_models(flags.output, *models); !written)
    return tl::unexpected(std::move(written.error()));
  if (flags.json) {
    print(summary(*models, work));
  } else {
    for (const auto& model : *models) {
      fmt::print("{}: {:.2f} % on rows not trained on after {} epochs ({})\n", model.name,
                 model.validation_percent, model.epochs, model.settings);
    }
  }
  return finish(work, fmt::format("interrupted; {} of {} networks are in {}", models->size(),
                                  sets->size(), flags.output));
}

// ---- graph-network

Result<int> run_graph_network(const Flags& flags) {
  const auto set = predict::read_graph_set(flags.samples);
  if (!set) return tl::unexpected(set.error());
  Work work(flags);
  const auto trained =
      train_graph_network({.features = set->features, .graphs = set->graphs, .ms = set->ms},
                          work.options(1.0), work.context());
  if (!trained) return core::within(flags.samples, trained.error());
  const auto text = core::format_json_line(trained->network.to_json()) + "\n";
  if (auto written = core::write_file(flags.output, text); !written)
    return tl::unexpected(std::move(written.error()));
  if (flags.json) {
    print({{"validation_percent", trained->validation_percent},
           {"epochs", trained->epochs},
           {"ended", to_string(trained->ended)},
           {"settings", trained->settings},
           {"elapsed_s", work.elapsed_s()},
           {"interrupted", work.is_interrupted()}});
  } else {
    fmt::print("{:.2f} % on graphs not trained on after {} epochs ({})\n",
               trained->validation_percent, trained->epochs, trained->settings);
  }
  return finish(work, "interrupted; the best network so far is in " + flags.output);
}

using Action = Result<int> (*)(const Flags& flags);

int parse_and_run(int argc, char** argv) {
  Flags flags;
  Action action = nullptr;
  CLI::App program("Trains networks for fleetfit, which starts it by itself.", "fleetfit-train");
  program.set_version_flag("--version", "fleetfit-train " + std::string(core::version()));
  const auto add = [&](const char* name, const char* what, Action run) {
    auto* verb = program.add_subcommand(name, what);
    add_flags(*verb, flags);
    verb->footer(fmt::format("Example:\n  fleetfit-train {} samples.json -o network.json", name));
    verb->callback([&action, run] { action = run; });
  };
  add("mlp", "Dense networks that predict times from rows of numbers", &run_mlp);
  add("graph-network", "A graph network that predicts the time of a whole network",
      &run_graph_network);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);
    return core::report(error.what(), core::kBadInput);
  }
  if (action == nullptr) {
    return core::report("no verb was given; 'fleetfit-train --help' lists them", core::kBadInput);
  }
  const auto status = action(flags);
  return status ? *status : core::report(status.error());
}

}  // namespace

int run_program(int argc, char** argv) {
  return core::run_guarded([&] { return parse_and_run(argc, argv); });
}

}  // namespace fleetfit::train
