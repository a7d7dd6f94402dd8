#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/program.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/interrupt.h"
#include "fleetfit/study/tuning.h"

namespace fleetfit::cli {
namespace {

struct WorkFlags {
  std::string study;
  std::string as = "worker";
  std::string folder;
  std::int64_t lease_ms = 10'000;
  std::int64_t idle_limit_s = 0;
  bool until_input_ends = false;
};

Result<int> work(const Context& context, const WorkFlags& flags) {
  const core::Interrupt interrupt;
  const core::SystemClock clock;
  FLEETFIT_ASSIGN(auto workplace,
                  app::open_workplace_patiently(context.flags.store, clock, interrupt.token()));
  study::WorkRequest request{.study = flags.study,
                             .as = flags.as,
                             .folder = flags.folder,
                             .lease = std::chrono::milliseconds(flags.lease_ms),
                             .parent = flags.until_input_ends ? STDIN_FILENO : -1};
  if (flags.idle_limit_s > 0) request.idle_limit = std::chrono::seconds(flags.idle_limit_s);
  if (flags.folder.empty()) {
    FLEETFIT_ASSIGN(request.folder, study::default_study_folder(context.flags.store));
  }
  return study::work_on_study(app::study_place(workplace), request, interrupt.token()).map([] {
    return 0;
  });
}

}  // namespace

// Not for people, so --help does not list it: `fleetfit tune` starts its workers with it.
void add_study_work(CLI::App& study, Context& context) {
  auto* verb = study.add_subcommand("work", "Train trials of a study until it is done");
  verb->group("");
  verb->footer("Example:\n  fleetfit study work fashion --as w9");
  auto flags = std::make_shared<WorkFlags>();
  verb->add_option("NAME", flags->study, "The study")->required();
  verb->add_option("--as", flags->as, "How the worker's name begins")->capture_default_str();
  verb->add_option("--folder", flags->folder, "Where checkpoints and logs are kept");
  verb->add_option("--lease-ms", flags->lease_ms, "As `fleetfit tune` was told")
      ->check(CLI::Range(100, 3'600'000));
  verb->add_option("--idle-limit", flags->idle_limit_s,
                   "End after so many seconds with nothing to do; 0: never")
      ->check(CLI::Range(0, 1'000'000));
  verb->add_flag("--until-input-ends", flags->until_input_ends, "End when the standard input does");
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return work(context, *flags); }; });
}

}  // namespace fleetfit::cli
