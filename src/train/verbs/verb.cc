#include "train/verbs/verb.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "fleetfit/core/json.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/progress_for_people.h"

namespace fleetfit::train {

void add_common_flags(CLI::App& verb, CommonFlags& flags) {
  verb.add_option("--seed", flags.seed, "Seed of everything random")->capture_default_str();
  verb.add_option("--threads", flags.threads, "Threads to use; 0: all that there are")
      ->check(CLI::Range(0, 1024));
  verb.add_flag("--json", flags.json, "Print one JSON document and nothing else");
  verb.add_flag("--quiet", flags.quiet, "No progress on the terminal");
}

Work::Work(const CommonFlags& flags)
    : start_(clock_.now()),
      pool_(flags.threads > 0 ? flags.threads : core::ThreadPool::available_cpus()),
      progress_(core::make_progress_for_people(clock_, {.quiet = flags.quiet || flags.json})) {}

int Work::finish(const std::string& interrupted) const {
  return is_interrupted() ? core::report(interrupted, core::kFailed) : core::kDone;
}

void print(const nlohmann::ordered_json& document) {
  const auto text = core::format_json(document);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace fleetfit::train
