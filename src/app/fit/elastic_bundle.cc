#include "app/fit/elastic_bundle.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "fleetfit/core/companion.h"
#include "fleetfit/core/file.h"

namespace fleetfit::app {
namespace {

constexpr std::string_view kTrainer = "fleetfit-train";

/// In what one bundle differs from another.
std::vector<std::string> flags_of(const fit::Fleet& fleet, const FitRequest& request) {
  const auto& plan = fleet.elastic;
  std::vector<std::string> flags = {"--data", fleet.data, fmt::format("--seed={}", request.seed)};
  const auto add = [&](std::string_view flag, const auto& value) {
    if (value) flags.push_back(fmt::format("{}={}", flag, *value));
  };
  add("--granularity", plan.granularity);
  add("--merge", plan.merge);
  add("--distill-epochs", plan.distill_epochs);
  add("--tune-epochs", plan.tune_epochs);
  add("--limit", plan.limit);
  if (!plan.shrink.empty()) flags.push_back("--shrink=" + plan.shrink);
  if (!plan.compute.empty()) flags.push_back("--compute=" + plan.compute);
  return flags;
}

bool is_there(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored);
}

}  // namespace

Result<std::filesystem::path> elastic_bundle(const FitPlace& place, FitFolder& folder) {
  const auto& fleet = place.fleet;
  if (!fleet.bundle.empty()) return fleet.located(fleet.bundle);
  const auto model = fleet.located(fleet.model);
  auto content = core::read_file(model);
  FLEETFIT_TRY(content);
  const auto flags = flags_of(fleet, place.request);
  for (const auto& flag : flags) *content += "\n" + flag;
  auto bundle = folder.named("elastic", *content, "ffb");
  if (is_there(bundle)) return bundle;

  core::ProgressTask(place.progress, {.name = "elastify"})
      .message(fmt::format("making {} elastic, once for all devices", model));
  std::vector<std::string> arguments = {"elastify", model};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  for (auto& word : {std::string("-o"), bundle.string(), std::string("--resume"),
                     std::string("--json"), fmt::format("--threads={}", place.request.threads)})
    arguments.push_back(word);
  const auto start = std::chrono::steady_clock::now();
  FLEETFIT_ASSIGN(
      const auto done,
      core::run_companion(kTrainer, arguments,
                          {.stop = place.stop, .environment = {{"GOMP_SPINCOUNT", "5000"}}}));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  FLEETFIT_TRY(folder.add_seconds("elastify", took.count()));
  if (place.stop.stop_requested()) {
    std::error_code ignored;  // what was learned so far is no bundle of the plan
    std::filesystem::remove(bundle, ignored);
    return fail(ErrorCode::cancelled, "stopped while the model was made elastic");
  }
  if (!done.status.succeeded() || !is_there(bundle))
    return fail(done.status.code == 2 ? ErrorCode::invalid_input : ErrorCode::device_failed,
                fmt::format("{}: it could not be made elastic", model));
  return bundle;
}

}  // namespace fleetfit::app
