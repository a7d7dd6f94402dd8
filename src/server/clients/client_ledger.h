#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "fleetfit/server/client_limits.h"

namespace fleetfit::server {

/// What the requests of each address hold: how many are on their way, and how many bytes of them
/// and of their answers are in memory. Safe to use from many threads; outlives its claims.
class ClientLedger {
 public:
  explicit ClientLedger(const ClientLimits& limits) : limits_(limits) {}
  ClientLedger(const ClientLedger&) = delete;
  ClientLedger& operator=(const ClientLedger&) = delete;

  /// A request on its way; gives back in the end what it has taken.
  class Claim {
   public:
    Claim(ClientLedger& ledger, std::string key) : ledger_(ledger), key_(std::move(key)) {}
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { ledger_.give_back(key_, *this); }

    /// False if so many more are not to be had.
    bool take(std::uint64_t bytes);
    /// From now on it is a stream of events; false if there are too many.
    bool become_stream();

   private:
    friend class ClientLedger;
    ClientLedger& ledger_;
    std::string key_;
    std::uint64_t bytes_ = 0;
    bool is_stream_ = false;
  };

  /// None if the address has too many on their way.
  std::unique_ptr<Claim> claim(const std::string& address);

 private:
  struct Held {
    std::size_t requests = 0;
    std::uint64_t bytes = 0;
    std::size_t streams = 0;
  };
  bool take(const std::string& key, std::uint64_t bytes);
  bool add_stream(const std::string& key);
  void give_back(const std::string& key, const Claim& claim);

  const ClientLimits limits_;
  std::mutex mutex_;
  std::unordered_map<std::string, Held> held_;
  std::uint64_t all_bytes_ = 0;
  std::size_t all_streams_ = 0;
};

}  // namespace fleetfit::server
