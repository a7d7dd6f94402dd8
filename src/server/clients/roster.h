#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fleetfit/server/client_limits.h"
#include "server/http_connection.h"

namespace fleetfit::server {

/// The connections that there are, by address. When there is need of room, connections that nobody
/// would miss much are found: those of the address that has the most; first those that wait between
/// two requests, then those whose request is not here yet; the longest waiting first. Safe to use
/// from many threads.
class Roster {
 public:
  using Id = std::uint64_t;
  using ConnectionPointer = std::shared_ptr<HttpConnection>;  // of the roster and who works on it

  explicit Roster(const ClientLimits& limits) : limits_(limits) {}

  /// Which one has to go before one more of that address can come.
  struct Room {
    bool is_there = false;
    std::optional<Id> instead_of = std::nullopt;  ///< if there is no room without it
  };
  Room room_for(const std::string& address, bool is_proxy) const;

  void add(Id id, const std::string& address, ConnectionPointer connection);
  /// The connection has come to another state; to be called after it was advanced.
  void note(Id id, Standing standing);
  void remove(Id id);

  ConnectionPointer find(Id id) const;
  /// Empty if it is gone.
  std::string address_of(Id id) const;
  std::vector<std::pair<Id, ConnectionPointer>> all() const;
  std::vector<std::pair<Id, ConnectionPointer>> streams() const;
  std::size_t size() const;

 private:
  struct Group {  // of an address
    std::size_t connections = 0;
    std::list<Id> idle;        // the longest waiting first
    std::list<Id> unfinished;  // too
  };
  struct Entry {
    ConnectionPointer connection;
    std::string address;
    Standing standing = Standing::unfinished;
    std::list<Id>::iterator place;  // in the list of its group, if it is in one
  };
  std::list<Id>* list_of(const Entry& entry);
  static std::optional<Id> spare_of(const Group& group);
  std::optional<Id> spare_of_the_largest() const;

  const ClientLimits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<Id, Entry> entries_;
  std::unordered_map<std::string, Group> groups_;
  std::unordered_map<Id, ConnectionPointer> streams_;
};

}  // namespace fleetfit::server
