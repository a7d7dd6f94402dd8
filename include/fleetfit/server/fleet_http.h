#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/server/address.h"
#include "fleetfit/server/client_limits.h"
#include "fleetfit/server/fleet_api.h"
#include "fleetfit/server/network.h"

/// A fleet's API over HTTP/1.1, with TLS or without.
namespace fleetfit::server {

/// Rung when there are new events, for the streams that wait for them. Safe to use from many
/// threads.
class Bell {
 public:
  void ring();
  /// Until it is rung, the time is over, or `stop` asks for it.
  void wait(std::chrono::milliseconds time, const std::stop_token& stop);

 private:
  std::mutex mutex_;
  std::condition_variable_any rung_;
  bool is_rung_ = false;
};

struct ListenOptions {
  Address address = {};
  std::filesystem::path certificate = {};  ///< PEM; empty: without TLS, on loopback alone
  std::filesystem::path key = {};
  std::filesystem::path incoming = {};  ///< folder for files on their way in; emptied at the start
  std::size_t workers = 8;              ///< threads that answer
  ClientLimits limits = {};
  Patience patience = {};
  std::vector<Network> trusted_proxies = {};         ///< that say for whom they ask
  std::function<void(const std::string&)> log = {};  ///< of what goes wrong; from any thread
};

/// Answers requests until it is stopped, and then those that have come already. Connections wait
/// without a thread of their own, streams of events among them; a request that comes slowly is
/// refused. `listening` gets the address once requests can come.
/// Fails with `invalid_input` on an address that others can reach without TLS and on a certificate
/// that cannot be used, with `io` if the address cannot.
Status serve_fleet(FleetApi& api, Bell& bell, const ListenOptions& options,
                   const std::function<void(const std::string& url)>& listening,
                   const std::stop_token& stop);

}  // namespace fleetfit::server
