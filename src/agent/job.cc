#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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
using namespace std::chrono_literals;

constexpr std::size_t kMostMessage = 2000;
constexpr std::size_t kMostChoices = 20'000;

/// Progress as events, one a second at most; messages as events of kind "log".
class EventProgress final : public core::Progress {
 public:
  EventProgress(Reporter& reporter, const core::Clock& clock)
      : reporter_(reporter), clock_(clock) {}

  void receive(const core::ProgressEvent& event) override {
    if (event.kind == core::ProgressKind::message) {
      reporter_.event("log", {{"message", event.text.substr(0, kMostMessage)}});
    } else if (event.kind == core::ProgressKind::advanced && is_due()) {
      nlohmann::json body = {{"name", event.name}, {"unit", event.unit}, {"done", event.done}};
      if (event.total > 0) body["total"] = event.total;
      reporter_.event("progress", body);
    }
  }

 private:
  bool is_due() {
    const std::scoped_lock lock(mutex_);
    const auto now = clock_.now();
    if (last_ && now - *last_ < 1s) return false;
    last_ = now;
    return true;
  }

  Reporter& reporter_;
  const core::Clock& clock_;
  std::mutex mutex_;
  std::optional<std::chrono::nanoseconds> last_ = std::nullopt;
};

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

Result<std::vector<store::KernelChoiceRecord>> read_choices(const core::JsonView& view) {
  FLEETFIT_ASSIGN(const auto owners, view.members());
  std::vector<store::KernelChoiceRecord> records;
  for (const auto& owner : owners) {
    FLEETFIT_ASSIGN(const auto choices, owner.value.members());
    for (const auto& choice : choices) {
      FLEETFIT_ASSIGN(auto kernel, choice.value.as_text());
      records.push_back({.cpu = owner.key, .key = choice.key, .choice = std::move(kernel)});
    }
  }
  return records;
}

// Which kernels the engine has found best on this machine is kept from job to job. What cannot be
// read or written is found again.
void load_kernel_choices(store::Store& store, const std::filesystem::path& file) {
  const auto json = core::read_json(file);
  if (!json) return;
  const auto records = read_choices(core::JsonView(*json, file.string()));
  if (!records || records->empty()) return;
  static_cast<void>(store.save_kernel_choices(*records));
}

void save_kernel_choices(store::Store& store, const std::filesystem::path& file) {
  const auto owners = store.list_kernel_cpus();
  if (!owners) return;
  nlohmann::json json = nlohmann::json::object();
  std::size_t left = kMostChoices;
  for (const auto& owner : *owners) {
    const auto choices = store.list_kernel_choices(owner);
    if (!choices || choices->size() > left) continue;
    left -= choices->size();
    for (const auto& choice : *choices) json[owner][choice.key] = choice.choice;
  }
  if (!json.empty()) static_cast<void>(core::write_json(file, json));
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

void Reporter::report(const nlohmann::json& message) {
  const auto line = core::format_json_line(message);
  const std::scoped_lock lock(mutex_);
  write_line_(line);
}

void Reporter::event(std::string_view kind, const nlohmann::json& body) {
  report({{"line", "event"}, {"kind", kind}, {"body", body}});
}

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
  EventProgress progress(reporter, clock);
  JobPlace place{.job = std::move(job),
                 .folder = folder,
                 .workplace = {.store = store::open_device_store(),
                               .clock = clock,
                               .programs = {.stop = stop}},
                 .reporter = reporter,
                 .progress = progress,
                 .stop = stop};
  const auto result = fetch_and_perform(place, connection);
  nlohmann::json outcome = {{"line", "outcome"}, {"finished", result.has_value()}};
  outcome["reason"] = result ? "" : result.error().message;
  outcome["result"] = result ? nlohmann::json(*result) : nlohmann::json::object();
  reporter.report(outcome);
  return {};
}

}  // namespace fleetfit::agent
