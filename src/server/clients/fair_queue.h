#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace fleetfit::server {

/// Connections for which there is something to do. Addresses take turns: one with a thousand of
/// them waits behind itself, and not before the others. Safe to use from many threads.
class FairQueue {
 public:
  struct Item {
    std::uint64_t id = 0;
    std::chrono::steady_clock::time_point since = {};
  };

  void push(const std::string& address, const Item& item);
  /// Waits; nothing once it has ended.
  std::optional<Item> pop();
  /// Forgets what waits.
  void end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, std::deque<Item>> waiting_;  // none of them is empty
  std::deque<std::string> turns_;                              // each of waiting_ once
  bool ended_ = false;
};

}  // namespace fleetfit::server
