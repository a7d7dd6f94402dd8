#include "train/verbs/verb.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/progress.h"

namespace fleetfit::train {
namespace {

/// Tells the study that the work is a trial of.
class ProgressOfTrial final : public core::Progress {
 public:
  void receive(const core::ProgressEvent& event) override {
    if (event.kind == core::ProgressKind::message) say({{"progress", event.text}});
  }
};

std::unique_ptr<core::Progress> make_progress(const CommonFlags& flags, const core::Clock& clock) {
  if (!flags.trial_summary.empty()) return std::make_unique<ProgressOfTrial>();
  return core::make_progress_for_people(clock, {.quiet = flags.quiet || flags.json});
}

}  // namespace

void add_common_flags(CLI::App& verb, CommonFlags& flags) {
  verb.add_option("--seed", flags.seed, "Seed of everything random")->capture_default_str();
  verb.add_option("--threads", flags.threads, "Threads to use; 0: all that there are")
      ->check(CLI::Range(0, 1024));
  verb.add_flag("--json", flags.json, "Print one JSON document and nothing else");
  verb.add_flag("--quiet", flags.quiet, "No progress on the terminal");
}

void add_trial_flags(CLI::App& verb, CommonFlags& flags) {
  // Empty groups are not in the help: these are not for people.
  verb.add_option("--as-trial", flags.trial_summary)->group("");
  verb.add_flag("--check-flags", flags.is_check)->group("");
}

void add_compute_flag(CLI::App& verb, Compute& compute) {
  const auto choose = [&compute](const std::string& text) {
    compute = text == "cuda" ? Compute::cuda : Compute::cpu;
  };
  verb.add_option_function<std::string>("--compute", choose, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->default_str("cpu");
}

void say(const nlohmann::json& document) {
  const auto line = core::format_json_line(document) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

Status tell(const CommonFlags& flags, const nlohmann::ordered_json& document,
            const std::string& text, const nlohmann::json& result) {
  const auto written_text = flags.json ? core::format_json(document) : text;
  if (flags.trial_summary.empty()) {
    std::fwrite(written_text.data(), 1, written_text.size(), stdout);
    return {};
  }
  if (auto written = core::write_file(flags.trial_summary, written_text); !written) return written;
  say({{"result", result}});
  return {};
}

Work::Work(const CommonFlags& flags)
    : start_(clock_.now()),
      pool_(flags.threads > 0 ? flags.threads : core::ThreadPool::available_cpus()),
      progress_(make_progress(flags, clock_)) {}

int Work::finish(const std::string& interrupted) const {
  return is_interrupted() ? core::report(interrupted, core::kFailed) : core::kDone;
}

void print(const nlohmann::ordered_json& document) {
  const auto text = core::format_json(document);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

namespace fs = std::filesystem;

Result<OpenedSplits> open_splits(const std::string& spec) {
  FLEETFIT_ASSIGN(auto train, data::open_dataset(spec, data::Split::train));
  FLEETFIT_ASSIGN(auto validation, data::open_dataset(spec, data::Split::validation));
  FLEETFIT_ASSIGN(auto test, data::open_dataset(spec, data::Split::test));
  return OpenedSplits{std::move(train), std::move(validation), std::move(test)};
}

Status check_output(const fs::path& output) {
  std::error_code ignored;
  const auto folder = output.has_parent_path() ? output.parent_path() : fs::path(".");
  if (fs::is_directory(folder, ignored) && !fs::is_directory(output, ignored)) return {};
  return refuse(fmt::format("{} cannot be written", output.string()));
}

}  // namespace fleetfit::train
