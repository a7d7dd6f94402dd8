#pragma once

#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/agent/agent.h"
#include "fleetfit/fleet/client.h"

namespace fleetfit::agent {

/// A server in memory that does as docs/fleet.md says, and fails as the test says.
class FakeServer final : public fleet::Client {
 public:
  Reply get(std::string_view) override { return nlohmann::json::object(); }
  Reply remove(std::string_view) override { return nlohmann::json::object(); }
  Reply upload(std::string_view, const std::filesystem::path&) override {
    return nlohmann::json::object();
  }
  Reply post(std::string_view path, const nlohmann::json& body) override {
    ++calls;
    if (failure) return tl::unexpected(*failure);
    if (refuse && refuse(path, body))
      return tl::unexpected(fleet::CallError{.status = 400, .message = "it is nonsense"});
    auto reply = answer(path, body);
    if (!lost_replies.empty() && path == lost_replies.front()) {
      lost_replies.pop_front();
      return tl::unexpected(fleet::CallError{.message = "the connection broke"});
    }
    return reply;
  }
  tl::expected<void, fleet::CallError> download(std::string_view hash,
                                                const std::filesystem::path& file) override {
    ++downloads;
    if (failure) return tl::unexpected(*failure);
    return on_download(hash, file);
  }

  std::optional<fleet::CallError> failure = std::nullopt;  ///< of all calls
  std::deque<std::string> lost_replies = {};  ///< the call is done, but the answer is lost
  std::function<bool(std::string_view, const nlohmann::json&)> refuse = {};
  std::function<tl::expected<void, fleet::CallError>(std::string_view,
                                                     const std::filesystem::path&)>
      on_download = {};
  std::deque<nlohmann::json> waiting = {};  ///< jobs, as a claim gives them
  std::vector<std::int64_t> cancel = {};
  std::int64_t last_sequence = 0;
  int calls = 0;
  int downloads = 0;
  int registrations = 0;
  std::vector<nlohmann::json> heartbeats = {};
  std::vector<nlohmann::json> results = {};            ///< one of each attempt
  int results_received = 0;                            ///< also those that were there already
  std::map<std::int64_t, nlohmann::json> events = {};  ///< by sequence

 private:
  nlohmann::json answer(std::string_view path, const nlohmann::json& body) {
    if (path == "/agent/register") {
      ++registrations;
      return {{"last_sequence", events.empty() ? last_sequence : events.rbegin()->first}};
    }
    if (path == "/agent/heartbeat") {
      heartbeats.push_back(body);
      return {{"cancel", cancel}, {"waiting", waiting.size()}, {"lease_s", 60}};
    }
    if (path == "/agent/claim") {
      auto jobs = nlohmann::json::array();
      if (!waiting.empty()) {
        jobs.push_back(waiting.front());
        waiting.pop_front();
      }
      return {{"jobs", jobs}};
    }
    if (path == "/agent/results")
      for (const auto& result : body.at("results")) take(result);
    if (path == "/agent/events")
      for (const auto& event : body.at("events")) events.emplace(event.at("sequence"), event);
    return nlohmann::json::object();
  }

  void take(const nlohmann::json& result) {
    ++results_received;
    for (const auto& known : results)
      if (known["job"] == result["job"] && known["attempt"] == result["attempt"]) return;
    results.push_back(result);
  }
};

/// What a job's process does, as the test says.
struct FakeJob {
  std::deque<std::string> lines = {};
  std::optional<ProcessEnd> end = std::nullopt;  ///< nothing: it goes on
  std::int64_t memory_bytes = 0;
  bool killed = false;
  std::string last_line = {};  ///< that it writes when it is told to end
};

class FakeProcesses final : public JobProcesses {
 public:
  Result<std::unique_ptr<JobProcess>> start(const std::filesystem::path& folder,
                                            const std::string& input) override {
    folders.push_back(folder);
    inputs.push_back(input);
    if (!can_start) return fail(ErrorCode::io, "there is no memory");
    job = std::exchange(next, {});
    return std::make_unique<Process>(job);
  }

  FakeJob job = {};   ///< the one that runs
  FakeJob next = {};  ///< the one to be started
  bool can_start = true;
  std::vector<std::filesystem::path> folders = {};
  std::vector<std::string> inputs = {};

 private:
  class Process final : public JobProcess {
   public:
    explicit Process(FakeJob& job) : job_(job) {}
    std::optional<std::string> read_line() override {
      if (job_.lines.empty()) return std::nullopt;
      auto line = job_.lines.front();
      job_.lines.pop_front();
      return line;
    }
    std::optional<ProcessEnd> ended() override { return job_.end; }
    std::int64_t memory_bytes() override { return job_.memory_bytes; }
    void kill() override {
      job_.killed = true;
      if (!job_.last_line.empty()) job_.lines.push_back(job_.last_line);
      job_.end = ProcessEnd{.status = {.signal = 9}};
    }

   private:
    FakeJob& job_;
  };
};

}  // namespace fleetfit::agent
