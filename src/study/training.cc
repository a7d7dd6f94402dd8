#include "fleetfit/study/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/core/sleep.h"

namespace fleetfit::study {
namespace {

using std::chrono::milliseconds;

std::filesystem::path absolute_output(const Training& training) {
  std::error_code ignored;
  return std::filesystem::absolute(training.output, ignored);
}

/// Where the training leaves what it has to tell.
std::filesystem::path summary_file(const Training& training) {
  return absolute_output(training).string() + ".summary";
}

/// A name of a study has no slash; the digits tell files of the same name apart.
std::string name_of(const Training& training) {
  const auto place = core::sha256_hex(absolute_output(training).string());
  return fmt::format("{} {} {:.6}", training.verb, training.output.filename().string(), place);
}

/// What the training reports. A shared folder may show the file some time after the job has ended.
Result<std::string> read_summary(const std::filesystem::path& file, const std::stop_token& stop) {
  constexpr milliseconds kBetweenReads{500};
  constexpr int kMostLooks = 120;
  auto text = core::read_file(file);
  for (int look = 1; !text && look < kMostLooks; ++look) {
    if (!core::sleep_unless_stopped(kBetweenReads, stop)) break;
    text = core::read_file(file);
  }
  return text;
}

/// One of the same output that is done makes room; one that is not is gone on with.
Status make_room(store::StudyStore& store, const Training& training, const TuneRequest& request) {
  FLEETFIT_ASSIGN(const auto found, store.find_study(request.study.name));
  if (!found) return {};
  if (found->done) return store.remove_study(request.study.name).map([](bool /*was*/) {});
  if (found->definition == request.definition) return {};
  return refuse(
      fmt::format("{} is being made by another command, which has not ended; the same "
                  "command goes on, or 'fleetfit study remove \"{}\"' forgets it",
                  training.output.string(), request.study.name));
}

Status check_end(store::StudyStore& store, const std::string& study) {
  FLEETFIT_ASSIGN(const auto trial, store.find_trial(study, 0));
  if (trial && trial->state == store::TrialState::finished) return {};
  return fail(ErrorCode::device_failed,
              fmt::format("the training failed: {}", trial ? trial->reason : "it was lost"));
}

}  // namespace

Result<std::string> study_of_training(const Training& training) {
  FLEETFIT_ASSIGN(auto command, trainer_command(training.verb));
  command.insert(command.end(), training.flags.begin(), training.flags.end());
  if (std::ranges::find(training.flags, "--resume") == training.flags.end())
    command.emplace_back("--resume");
  command.insert(command.end(), {"--as-trial", summary_file(training).string()});
  // Lines of JSON, which is YAML, so that resources can stand as they were written.
  const auto line = [](const char* key, const nlohmann::json& value) {
    return fmt::format("{}: {}\n", key, core::format_json_line(value));
  };
  auto text =
      line("name", name_of(training)) + line("workload", {{"command", command}}) +
      line("parameters",
           {{"training",
             {{"output",
               {{"values", nlohmann::json::array({absolute_output(training).string()})}}}}}}) +
      line("objective", {{"maximize", "accuracy"}}) +
      line("budget", {{"kind", "epochs"}, {"max_epochs", 1}, {"max_trials", 1}}) +
      line("algorithm", {{"model", "random"}});
  if (training.resources.empty()) return text;
  FLEETFIT_TRY(tune::parse_resources(training.resources, "--resources"));
  return text + fmt::format("resources: {}\n", training.resources);
}

Result<std::string> run_training(const StudyPlace& place, const Training& training,
                                 TuneRequest request, const TuningParts& parts,
                                 const std::stop_token& stop) {
  FLEETFIT_TRY(make_room(place.studies, training, request));
  request.resume = true;
  FLEETFIT_ASSIGN(const auto done, tune_study(place, request, parts, stop));
  if (!done.done) return fail(ErrorCode::cancelled, "stopped; the same command goes on");
  FLEETFIT_TRY(check_end(place.studies, request.study.name));
  const auto file = summary_file(training);
  auto text = read_summary(file, stop);
  std::error_code ignored;
  if (text) std::filesystem::remove(file, ignored);
  return text;
}

}  // namespace fleetfit::study
