#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <stop_token>
#include <string>

#include "fleetfit/core/result.h"
#include "fleetfit/fleet/client.h"

namespace fleetfit::agent {

struct CacheOptions {
  std::filesystem::path folder = {};
  std::int64_t most_bytes = 0;
  /// Files that stay, if there is another way: those of deployed bundles.
  std::set<std::string, std::less<>> pinned = {};
  /// False if it was stopped.
  std::function<bool(std::chrono::milliseconds, const std::stop_token&)> sleep = {};
  int attempts = 60;  ///< to get a file from a server that does not answer
};

/// Files that jobs need, by their hashes. Each is checked whenever it is used; those that were not
/// used for longest go when there are too many.
class FileCache {
 public:
  FileCache(CacheOptions options, fleet::Client& server)
      : options_(std::move(options)), server_(server) {}

  /// The file's path; gets it if it is not there or damaged. Files that were fetched by this object
  /// stay as long as it lives. Fails with `io` if the server does not give it, with `invalid_input`
  /// if it is larger than the cache.
  Result<std::filesystem::path> fetch(const std::string& hash, const std::stop_token& stop);

 private:
  Status download(const std::string& hash, const std::filesystem::path& file,
                  const std::stop_token& stop);
  Status make_room();

  CacheOptions options_;
  fleet::Client& server_;
  std::set<std::string, std::less<>> in_use_ = {};
};

}  // namespace fleetfit::agent
