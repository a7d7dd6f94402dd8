#include "server/clients/roster.h"

#include <utility>

namespace fleetfit::server {

std::list<Roster::Id>* Roster::list_of(const Entry& entry) {
  auto& group = groups_[entry.address];
  if (entry.standing == Standing::idle) return &group.idle;
  if (entry.standing == Standing::unfinished) return &group.unfinished;
  return nullptr;
}

std::optional<Roster::Id> Roster::spare_of(const Group& group) {
  if (!group.idle.empty()) return group.idle.front();
  if (!group.unfinished.empty()) return group.unfinished.front();
  return std::nullopt;
}

std::optional<Roster::Id> Roster::spare_of_the_largest() const {
  const Group* largest = nullptr;
  for (const auto& [address, group] : groups_)
    if (spare_of(group) && (largest == nullptr || group.connections > largest->connections))
      largest = &group;
  return largest == nullptr ? std::nullopt : spare_of(*largest);
}

Roster::Room Roster::room_for(const std::string& address, bool is_proxy) const {
  const std::lock_guard lock(mutex_);
  const auto group = groups_.find(address);
  const bool has_its_share =
      !is_proxy && group != groups_.end() && group->second.connections >= limits_.connections;
  if (!has_its_share && entries_.size() < limits_.all_connections) return {.is_there = true};
  return {.instead_of = has_its_share ? spare_of(group->second) : spare_of_the_largest()};
}

void Roster::add(Id id, const std::string& address, ConnectionPointer connection) {
  const std::lock_guard lock(mutex_);
  auto& group = groups_[address];
  ++group.connections;
  Entry entry{.connection = std::move(connection), .address = address};
  entry.place = group.unfinished.insert(group.unfinished.end(), id);
  entries_.emplace(id, std::move(entry));
}

void Roster::note(Id id, Standing standing) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  if (at == entries_.end()) return;
  auto& entry = at->second;
  // One that sends a request letter by letter keeps its place; one that had a request comes last.
  if (entry.standing == standing && standing != Standing::idle) return;
  if (auto* list = list_of(entry)) list->erase(entry.place);
  if (entry.standing == Standing::stream) streams_.erase(id);
  entry.standing = standing;
  if (auto* list = list_of(entry)) entry.place = list->insert(list->end(), id);
  if (standing == Standing::stream) streams_.emplace(id, entry.connection);
}

void Roster::remove(Id id) {
  ConnectionPointer connection;  // ends when nothing is locked
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  if (at == entries_.end()) return;
  if (auto* list = list_of(at->second)) list->erase(at->second.place);
  streams_.erase(id);
  const auto group = groups_.find(at->second.address);
  if (--group->second.connections == 0) groups_.erase(group);
  connection = std::move(at->second.connection);
  entries_.erase(at);
}

Roster::ConnectionPointer Roster::find(Id id) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : at->second.connection;
}

std::string Roster::address_of(Id id) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  return at == entries_.end() ? std::string() : at->second.address;
}

std::vector<std::pair<Roster::Id, Roster::ConnectionPointer>> Roster::all() const {
  std::vector<std::pair<Id, ConnectionPointer>> list;
  const std::lock_guard lock(mutex_);
  list.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) list.emplace_back(id, entry.connection);
  return list;
}

std::vector<std::pair<Roster::Id, Roster::ConnectionPointer>> Roster::streams() const {
  const std::lock_guard lock(mutex_);
  return {streams_.begin(), streams_.end()};
}

std::size_t Roster::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace fleetfit::server
