#include "agent/job_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "fleetfit/core/json.h"

namespace fleetfit::agent {
namespace {

constexpr const char* kName = "job.json";

Result<JobOptions> options_from(const core::JsonView& json) {
  JobOptions options;
  const auto state = json.text("state");
  if (!state) return tl::unexpected(state.error());
  const auto key = json.text("public_key");
  if (!key) return tl::unexpected(key.error());
  const auto cache = json.integer("cache_bytes", {.min = 0});
  if (!cache) return tl::unexpected(cache.error());
  const auto exec = json.boolean("allow_exec");
  if (!exec) return tl::unexpected(exec.error());
  return JobOptions{
      .state = *state, .public_key = *key, .cache_bytes = *cache, .allow_exec = *exec};
}

}  // namespace

Status write_job_file(const std::filesystem::path& folder, const JobFile& file) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", folder.string(), error.message()));
  nlohmann::json json = fleet::to_json(std::vector{file.assignment});
  json["device"] = file.device;
  json["options"] = {{"state", file.options.state.string()},
                     {"public_key", file.options.public_key.string()},
                     {"cache_bytes", file.options.cache_bytes},
                     {"allow_exec", file.options.allow_exec}};
  return core::write_json(folder / kName, json);
}

Result<JobFile> read_job_file(const std::filesystem::path& folder) {
  const auto json = core::read_json(folder / kName);
  if (!json) return tl::unexpected(json.error());
  const core::JsonView view(*json, (folder / kName).string());
  auto jobs = fleet::parse_assignments(view);
  if (!jobs) return tl::unexpected(std::move(jobs.error()));
  if (jobs->size() != 1) return view.error("jobs: expected one");
  const auto device = view.text("device");
  if (!device) return tl::unexpected(device.error());
  const auto part = view.at("options");
  if (!part) return tl::unexpected(part.error());
  auto options = options_from(*part);
  if (!options) return tl::unexpected(std::move(options.error()));
  return JobFile{
      .assignment = std::move(jobs->front()), .device = *device, .options = *std::move(options)};
}

}  // namespace fleetfit::agent
