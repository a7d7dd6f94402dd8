#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fleetfit/server/fleet_http.h"
#include "server/http_connection.h"
#include "server/socket.h"

namespace fleetfit::server {

/// Waits for all connections at once (epoll) and lets a few threads advance those that can.
class HttpServer {
 public:
  /// `bell` is rung when there are new events; none if there are never any. Without `tls` anybody
  /// on the way can read along.
  HttpServer(HttpApi& api, Bell* bell, const ListenOptions& options, TlsContext tls);
  ~HttpServer();

  /// Listens, and gives the address.
  Result<Address> open();
  /// Until it is stopped.
  Status run(const std::stop_token& stop);

 private:
  using Id = std::uint64_t;
  using ConnectionPointer = std::shared_ptr<HttpConnection>;  // of the table and who works on it

  void accept_all();
  void add(core::FileDescriptor descriptor, std::string peer);
  void arm(Id id, const HttpConnection& connection, Want want) const;
  void remove(Id id);
  ConnectionPointer find(Id id);
  std::vector<std::pair<Id, ConnectionPointer>> all();
  bool is_busy();

  void enqueue(Id id);
  std::optional<Id> dequeue();
  void work();
  void advance(Id id);

  void wait_for_connections(int timeout_ms);
  void enqueue_late();
  void finish_requests();
  void look_after(const std::stop_token& stop);
  void send_events(const std::stop_token& stop);
  void send_events_once();
  void log(const std::string& message) const;

  ListenOptions options_;
  Bell* bell_;
  TlsContext tls_;
  HttpSurroundings surroundings_;
  core::FileDescriptor listener_;
  core::FileDescriptor epoll_;
  core::FileDescriptor wake_;  // an eventfd

  std::mutex connections_mutex_;
  std::unordered_map<Id, ConnectionPointer> connections_;
  Id next_id_ = 2;  // the first ones are the listener's and the wake's

  std::mutex queue_mutex_;
  std::condition_variable queued_;
  std::deque<Id> queue_;
  bool ended_ = false;
};

}  // namespace fleetfit::server
