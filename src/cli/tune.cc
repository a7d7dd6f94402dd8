#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "fleetfit/app/studies.h"
#include "fleetfit/app/tuning.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/interrupt.h"

namespace fleetfit::cli {
namespace {

struct TuneFlags {
  std::string file;
  bool resume = false;
  std::size_t workers = 1;
  std::string executor = "local";
  double lease_s = 10;
  std::string report;
};

Result<std::string> own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return fail(ErrorCode::io, fmt::format("cannot find fleetfit itself: {}", error.message()));
  return path.string();
}

Result<app::TuneRequest> request_of(const Context& context, const TuneFlags& flags) {
  auto text = core::read_file(flags.file);
  if (!text) return tl::unexpected(std::move(text.error()));
  auto study = tune::parse_study(*text, flags.file);
  if (!study) return tl::unexpected(std::move(study.error()));
  if (context.flags.seed != GlobalFlags{}.seed) study->seed = context.flags.seed;
  auto folder = app::default_study_folder(context.flags.store);
  if (!folder) return tl::unexpected(std::move(folder.error()));
  auto self = own_program();
  if (!self) return tl::unexpected(std::move(self.error()));
  const std::string name = study->name;
  return app::TuneRequest{
      .study = *std::move(study),
      .definition = *std::move(text),
      .resume = flags.resume,
      .workers = flags.workers,
      .worker_command = {*std::move(self), "--store", context.flags.store, "study", "work",
                         "--until-input-ends", name},
      .folder = *std::move(folder),
      .lease = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * flags.lease_s))};
}

std::string best_text(const app::BestOfStudy& best) {
  if (!best.best) return fmt::format("nothing to recommend: {}\n", best.why_none);
  return fmt::format("best: trial {}; `fleetfit study best {}` tells more\n",
                     best.best->trial.record.number, best.record.name);
}

std::string summary_text(const app::TuneSummary& summary) {
  const auto& trials = summary.trials;
  std::string text = fmt::format("{} trials: {} finished, {} stopped, {} failed", trials.all(),
                                 trials.finished, trials.stopped, trials.failed);
  if (!summary.done)
    text += fmt::format("; {} left; the same command with --resume goes on",
                        trials.queued + trials.paused + trials.running);
  return text + "\n";
}

Result<int> print(const Context& context, app::Workplace& workplace, const std::string& name,
                  const app::TuneSummary& summary) {
  const auto best = app::best_of_study(workplace, name);
  if (!best) return tl::unexpected(best.error());
  if (context.flags.json) {
    context.print(app::to_json(*best));
  } else {
    context.print(summary_text(summary) + best_text(*best));
  }
  return summary.done && best->best ? 0 : 1;
}

Result<int> run(Context& context, const TuneFlags& flags) {
  const auto request = request_of(context, flags);
  if (!request) return tl::unexpected(request.error());
  const core::Interrupt interrupt;
  auto workplace = context.open_workplace();
  if (!workplace) return tl::unexpected(workplace.error());
  const auto inference = app::make_inference_tuner(*workplace, request->study);
  const auto executor = tune::make_local_executor();
  const auto summary =
      app::tune_study(*workplace, *request,
                      {.executor = *executor,
                       .inference = request->study.inference ? inference.get() : nullptr,
                       .progress = context.progress()},
                      interrupt.token());
  if (!summary) return tl::unexpected(summary.error());
  if (!flags.report.empty()) {
    const auto written = app::report_study(*workplace, request->study.name, flags.report);
    if (!written) return tl::unexpected(written.error());
  }
  return print(context, *workplace, request->study.name, *summary);
}

}  // namespace

void add_tune(CLI::App& program, Context& context) {
  auto* verb = program.add_subcommand(
      "tune", "Tune a network's parameters together with how it is run on devices");
  verb->footer(
      "Any process of it may be killed at any time; --resume goes on.\n"
      "Example:\n  fleetfit tune fashion.yaml --workers 2\n  fleetfit study best fashion");
  auto flags = std::make_shared<TuneFlags>();
  verb->add_option("STUDY", flags->file, "The study file (docs/formats/study.md)")->required();
  verb->add_flag("--resume", flags->resume, "Go on with the study if there is one of that name");
  verb->add_option("--workers", flags->workers, "So many trials are trained at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--executor", flags->executor, "Where workers run: local")
      ->check(CLI::IsMember({"local"}))
      ->capture_default_str();
  verb->add_option("--report", flags->report, "A page of HTML to write at the end, with charts");
  verb->add_option("--lease", flags->lease_s,
                   "Seconds without a sign of life after which a worker of another machine is "
                   "taken for dead")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return run(context, *flags); }; });
}

}  // namespace fleetfit::cli
