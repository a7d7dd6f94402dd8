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
  FLEETFIT_ASSIGN(const auto state, json.text("state"));
  FLEETFIT_ASSIGN(const auto key, json.text("public_key"));
  FLEETFIT_ASSIGN(const auto cache, json.integer("cache_bytes", {.min = 0}));
  FLEETFIT_ASSIGN(const auto exec, json.boolean("allow_exec"));
  return JobOptions{.state = state, .public_key = key, .cache_bytes = cache, .allow_exec = exec};
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
  FLEETFIT_ASSIGN(const auto json, core::read_json(folder / kName));
  const core::JsonView view(json, (folder / kName).string());
  FLEETFIT_ASSIGN(auto jobs, fleet::parse_assignments(view));
  if (jobs.size() != 1) return view.error("jobs: expected one");
  FLEETFIT_ASSIGN(const auto device, view.text("device"));
  FLEETFIT_ASSIGN(const auto part, view.at("options"));
  FLEETFIT_ASSIGN(auto options, options_from(part));
  return JobFile{
      .assignment = std::move(jobs.front()), .device = device, .options = std::move(options)};
}

std::string connection_text(const fleet::ClientOptions& options) {
  return core::format_json_line({{"server", options.server},
                                 {"token", options.token},
                                 {"authority", options.authority.string()},
                                 {"device", options.device}});
}

Result<fleet::ClientOptions> parse_connection(std::string_view text) {
  FLEETFIT_ASSIGN(const auto json, core::parse_json(text, "connection"));
  const core::JsonView view(json, "connection");
  fleet::ClientOptions options;
  for (const auto& [key, field] : {std::pair{"server", &fleet::ClientOptions::server},
                                   std::pair{"token", &fleet::ClientOptions::token},
                                   std::pair{"device", &fleet::ClientOptions::device}}) {
    FLEETFIT_ASSIGN(options.*field, view.text(key));
  }
  FLEETFIT_ASSIGN(options.authority, view.text("authority"));
  return options;
}

}  // namespace fleetfit::agent
