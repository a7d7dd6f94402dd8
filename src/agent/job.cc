#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "agent/file_cache.h"
#include "agent/job_place.h"
#include "fleetfit/agent/agent.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/sleep.h"
#include "fleetfit/store/store.h"

namespace fleetfit::agent {
namespace {

namespace fs = std::filesystem;

std::set<std::string, std::less<>> names_in(const fs::path& folder) {
  std::set<std::string, std::less<>> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    names.insert(entry.path().filename().string());
  return names;
}

Result<std::map<std::string, fs::path>> fetch_files(const JobFile& job, std::string_view connection,
                                                    const std::stop_token& stop) {
  const auto hashes = fleet::files_of(job.assignment.request);
  std::map<std::string, fs::path> files;
  if (hashes.empty()) return files;
  FLEETFIT_ASSIGN(auto options, parse_connection(connection));
  options.max_download_bytes = job.options.cache_bytes;
  FLEETFIT_ASSIGN(const auto client, fleet::make_client(options));
  FileCache cache({.folder = job.options.state / "files",
                   .most_bytes = job.options.cache_bytes,
                   .pinned = names_in(job.options.state / "deployed"),
                   .sleep = core::sleep_unless_stopped},
                  *client);
  for (const auto& hash : hashes) {
    FLEETFIT_ASSIGN(files[hash], cache.fetch(hash, stop));
  }
  return files;
}

Result<nlohmann::ordered_json> fetch_and_perform(JobPlace& place, std::string_view connection) {
  FLEETFIT_ASSIGN(place.files, fetch_files(place.job, connection, place.stop));
  place.reporter.report({{"line", "started"}});
  const auto choices = place.job.options.state / "kernels.json";
  load_kernel_choices(*place.workplace.store, choices);
  auto result = perform(place);
  save_kernel_choices(*place.workplace.store, choices);
  return result;
}

}  // namespace

std::optional<fs::path> JobPlace::public_key() const {
  if (job.options.public_key.empty()) return std::nullopt;
  return job.options.public_key;
}

fs::path JobPlace::pool_of(const std::string& bundle) const {
  return job.options.state / "pools" / (bundle + ".json");
}

Status JobPlace::pin(const std::string& bundle) const {
  const auto marks = job.options.state / "deployed";
  std::error_code error;
  fs::create_directories(marks, error);
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", marks.string(), error.message()));
  return core::write_json(marks / bundle, nlohmann::json::object());
}

Status do_job(const fs::path& folder, std::string_view connection, const core::Clock& clock,
              const std::function<void(std::string_view)>& write_line,
              const std::stop_token& stop) {
  FLEETFIT_ASSIGN(auto job, read_job_file(folder));
  Reporter reporter(write_line);
  const auto progress = make_event_progress(reporter, clock);
  JobPlace place{.job = std::move(job),
                 .folder = folder,
                 .workplace = {.store = store::open_device_store(), .clock = clock},
                 .reporter = reporter,
                 .progress = *progress,
                 .stop = stop};
  const auto result = fetch_and_perform(place, connection);
  nlohmann::json outcome = {{"line", "outcome"}, {"finished", result.has_value()}};
  outcome["reason"] = result ? "" : result.error().message;
  outcome["result"] = result ? nlohmann::json(*result) : nlohmann::json::object();
  reporter.report(outcome);
  return {};
}

}  // namespace fleetfit::agent
