#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <string_view>

#include "agent/job_file.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"

namespace fleetfit::agent {

/// Lines to the agent. Safe to use from many threads.
class Reporter {
 public:
  explicit Reporter(const std::function<void(std::string_view)>& write_line)
      : write_line_(write_line) {}

  void report(const nlohmann::json& message);
  void event(std::string_view kind, const nlohmann::json& body);

 private:
  const std::function<void(std::string_view)>& write_line_;
  std::mutex mutex_;
};

/// Where a job is done.
struct JobPlace {
  JobFile job = {};
  std::filesystem::path folder = {};
  std::map<std::string, std::filesystem::path> files = {};  ///< by hash, checked
  app::Workplace workplace;
  Reporter& reporter;
  core::Progress& progress;
  std::stop_token stop = {};

  const std::filesystem::path& file(const std::string& hash) const { return files.at(hash); }
  std::optional<std::filesystem::path> public_key() const;
  /// Where the device keeps its pool of a bundle.
  std::filesystem::path pool_of(const std::string& bundle) const;
  /// The bundle's file is not taken away when the cache is full.
  Status pin(const std::string& bundle) const;
};

/// Does the job; its result.
Result<nlohmann::ordered_json> perform(JobPlace& place);

}  // namespace fleetfit::agent
