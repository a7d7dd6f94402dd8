#pragma once

#include <stop_token>
#include <string>

#include "fleetfit/server/fleet_http.h"
#include "server/clients/fair_queue.h"
#include "server/clients/roster.h"
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
  using Id = Roster::Id;

  void accept_all();
  void add(core::FileDescriptor descriptor, const std::string& peer);
  bool make_room(const std::string& address, bool is_proxy);
  bool give_up(Id id);
  void arm(Id id, const HttpConnection& connection, Want want) const;
  void close(Id id, HttpConnection& connection);
  bool is_busy() const;

  void enqueue(Id id);
  void work();
  void advance(const FairQueue::Item& item);

  void wait_for_connections(int timeout_ms);
  void enqueue_late();
  void finish_requests();
  void look_after(const std::stop_token& stop);
  void send_events(const std::stop_token& stop);
  bool send_events_once();
  void close_slowest_streams();
  void log(const std::string& message) const;

  ListenOptions options_;
  Bell* bell_;
  TlsContext tls_;
  HttpSurroundings surroundings_;
  core::FileDescriptor listener_;
  core::FileDescriptor epoll_;
  core::FileDescriptor wake_;  // an eventfd

  Roster roster_;
  FairQueue queue_;
  Id next_id_ = 2;  // the first ones are the listener's and the wake's
};

}  // namespace fleetfit::server
