#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/tune/study_workers.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/program.h"
#include "fleetfit/study/studies.h"
#include "fleetfit/study/tuning.h"

namespace fleetfit::cli {
namespace {

using Say = std::function<void(std::string_view)>;

struct TuneFlags {
  std::string file;
  bool resume = false;
  std::size_t workers = 1;
  StudyWorkers where;
  double lease_s = 10;
  double store_patience_s = std::chrono::duration<double>(study::kStorePatience).count();
  std::string report;
};

Result<study::TuneRequest> request_of(const Context& context, const TuneFlags& flags) {
  FLEETFIT_ASSIGN(auto text, core::read_file(flags.file));
  auto request = study_request(context, flags.where, std::move(text), flags.file);
  if (!request) return request;
  request->resume = flags.resume;
  request->workers = flags.workers;
  request->lease = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * flags.lease_s));
  request->store_patience =
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * flags.store_patience_s));
  return request;
}

std::string best_text(const study::BestOfStudy& best) {
  if (!best.best) return fmt::format("nothing to recommend: {}\n", best.why_none);
  return fmt::format("best: trial {}; `fleetfit study best {}` tells more\n",
                     best.best->trial.record.number, best.record.name);
}

std::string summary_text(const study::TuneSummary& summary) {
  const auto& trials = summary.trials;
  std::string text = fmt::format("{} trials: {} finished, {} stopped, {} failed", trials.all(),
                                 trials.finished, trials.stopped, trials.failed);
  if (!summary.done)
    text += fmt::format("; {} left; the same command with --resume goes on",
                        trials.queued + trials.paused + trials.running);
  return text + "\n";
}

Result<Verdict> print(const Context& context, app::Workplace& workplace, const std::string& name,
                      const study::TuneSummary& summary) {
  FLEETFIT_ASSIGN(const auto best, study::best_of_study(workplace.store->studies(), name));
  context.show(best, summary_text(summary) + best_text(best));
  if (!summary.done)
    return Verdict::failed("the study has not ended; the same command with --resume goes on");
  return done_if(best.best.has_value(), kNoBestTrial);
}

Result<Verdict> run(Context& context, const TuneFlags& flags, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto request, request_of(context, flags));
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  const auto executor = make_executor(context, flags.where, request, workplace.clock);
  const bool is_silent = context.flags.quiet || context.flags.json;
  FLEETFIT_ASSIGN(const auto summary, study::tune_study(app::study_place(workplace), request,
                                                        {.executor = *executor,
                                                         .progress = context.progress(),
                                                         .warn = is_silent ? core::say : Say{}},
                                                        stop));
  if (!flags.report.empty()) {
    FLEETFIT_TRY(study::report_study(workplace.store->studies(), request.study.name, flags.report));
  }
  return print(context, workplace, request.study.name, summary);
}

}  // namespace

void add_tune(CLI::App& program, Context& context) {
  auto [verb, flags] = add_verb<TuneFlags>(
      program, "tune", "Tune a network's parameters together with how it is run on devices");
  verb->footer(
      "Any process of it may be killed at any time; --resume goes on.\n"
      "Example:\n  fleetfit tune fashion.yaml --workers 2\n  fleetfit study best fashion");
  verb->add_option("STUDY", flags->file, "The study file (docs/formats/study.md)")->required();
  verb->add_flag("--resume", flags->resume, "Go on with the study if there is one of that name");
  verb->add_option("--workers", flags->workers, "So many trials are trained at a time")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--executor", flags->where.executor,
                   "Where workers run: processes here, or jobs of a cluster (docs/slurm.md)")
      ->check(CLI::IsMember({"local", "slurm"}));
  verb->add_option(
      "--folder", flags->where.folder,
      "Where checkpoints and logs are kept, which all workers can write; beside a file "
      "of SQLite, else fleetfit.studies here");
  verb->add_option("--report", flags->report, "A page of HTML to write at the end, with charts");
  verb->add_option("--lease", flags->lease_s,
                   "Seconds without a sign of life after which a worker of another machine is "
                   "taken for dead")
      ->check(CLI::Range(0.1, 3600.0));
  constexpr double kMonthS = 30 * 24 * 3600;
  verb->add_option("--store-patience", flags->store_patience_s,
                   "How long a store that cannot be used is waited for: 90s, 10m, 2h")
      ->transform(
          CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}},
                                CLI::AsNumberWithUnit::CASE_SENSITIVE, "TIME"))
      ->check(CLI::Range(0.0, kMonthS))
      ->default_str("10m");
  context.on(verb,
             [flags, &context](const std::stop_token& stop) { return run(context, *flags, stop); });
}

namespace {

bool is_on_cluster(const StudyWorkers& workers) { return workers.executor == "slurm"; }

Result<std::filesystem::path> folder_of(const Context& context, const StudyWorkers& workers) {
  auto standard = study::default_study_folder(context.flags.store);
  if (!standard || workers.folder.empty()) return standard;
  return std::filesystem::absolute(workers.folder);
}

// Local workers end with the tuner. Those of a cluster outlive it for a while, for its successor.
std::vector<std::string> worker_command(std::string self, std::string store,
                                        const StudyWorkers& workers, std::string study) {
  std::vector<std::string> command{std::move(self), "--store", std::move(store), "study", "work"};
  if (is_on_cluster(workers)) {
    command.insert(command.end(), {"--idle-limit", "300"});
  } else {
    command.emplace_back("--until-input-ends");
  }
  command.push_back(std::move(study));
  return command;
}

struct WorkFlags {
  std::string study;
  std::string as = "worker";
  std::string folder;
  std::int64_t lease_ms = 10'000;
  std::int64_t store_patience_ms = std::chrono::milliseconds(study::kStorePatience).count();
  std::int64_t idle_limit_s = 0;
  bool until_input_ends = false;
};

Result<Verdict> work(const Context& context, const WorkFlags& flags, const std::stop_token& stop) {
  const core::SystemClock clock;
  FLEETFIT_ASSIGN(auto workplace,
                  core::within("study " + flags.study,
                               app::open_workplace_patiently(context.flags.store, clock, stop)));
  study::WorkRequest request{.study = flags.study,
                             .as = flags.as,
                             .folder = flags.folder,
                             .lease = std::chrono::milliseconds(flags.lease_ms),
                             .store_patience = std::chrono::milliseconds(flags.store_patience_ms),
                             .parent = flags.until_input_ends ? STDIN_FILENO : -1};
  if (flags.idle_limit_s > 0) request.idle_limit = std::chrono::seconds(flags.idle_limit_s);
  if (flags.folder.empty()) {
    FLEETFIT_ASSIGN(request.folder, study::default_study_folder(context.flags.store));
  }
  return study::work_on_study(app::study_place(workplace), request, stop).map(done);
}

}  // namespace

Result<study::TuneRequest> study_request(const Context& context, const StudyWorkers& workers,
                                         std::string text, const std::string& file) {
  FLEETFIT_ASSIGN(auto study, tune::parse_study(text, file));
  if (context.flags.seed != GlobalFlags{}.seed) study.seed = context.flags.seed;
  FLEETFIT_ASSIGN(auto folder, folder_of(context, workers));
  FLEETFIT_ASSIGN(auto self, own_program());
  auto command = worker_command(std::move(self), store_for_others(context), workers, study.name);
  return study::TuneRequest{.study = std::move(study),
                            .definition = std::move(text),
                            .worker_command = std::move(command),
                            .folder = std::move(folder)};
}

std::unique_ptr<tune::Executor> make_executor(Context& context, const StudyWorkers& workers,
                                              const study::TuneRequest& request,
                                              const core::Clock& clock) {
  if (!is_on_cluster(workers)) return tune::make_local_executor();
  return study::make_slurm_executor(request, clock, context.progress());
}

// Not for people, so --help does not list it: `fleetfit tune` starts its workers with it.
void add_study_work(CLI::App& study, Context& context) {
  auto [verb, flags] =
      add_verb<WorkFlags>(study, "work", "Train trials of a study until it is done");
  verb->group("");
  verb->footer("Example:\n  fleetfit study work fashion --as w9");
  verb->add_option("NAME", flags->study, "The study")->required();
  verb->add_option("--as", flags->as, "How the worker's name begins")->capture_default_str();
  verb->add_option("--folder", flags->folder, "Where checkpoints and logs are kept");
  verb->add_option("--lease-ms", flags->lease_ms, "As `fleetfit tune` was told")
      ->check(CLI::Range(100, 3'600'000));
  verb->add_option("--store-patience-ms", flags->store_patience_ms,
                   "How long the store may be away")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--idle-limit", flags->idle_limit_s,
                   "End after so many seconds with nothing to do; 0: never")
      ->check(CLI::Range(0, 1'000'000));
  verb->add_flag("--until-input-ends", flags->until_input_ends, "End when the standard input does");
  context.on(verb, flags, work);
}

}  // namespace fleetfit::cli
