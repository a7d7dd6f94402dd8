#include "server/clients/client_ledger.h"

#include "fleetfit/server/network.h"

namespace fleetfit::server {

std::unique_ptr<ClientLedger::Claim> ClientLedger::claim(const std::string& address) {
  auto key = limit_key(address);
  {
    const std::lock_guard lock(mutex_);
    auto& held = held_[key];
    if (held.requests >= limits_.requests) return nullptr;
    ++held.requests;
  }
  return std::make_unique<Claim>(*this, std::move(key));
}

bool ClientLedger::Claim::take(std::uint64_t bytes) {
  if (!ledger_.take(key_, bytes)) return false;
  bytes_ += bytes;
  return true;
}

bool ClientLedger::Claim::become_stream() {
  is_stream_ = ledger_.add_stream(key_);
  return is_stream_;
}

bool ClientLedger::add_stream(const std::string& key) {
  const std::lock_guard lock(mutex_);
  auto& held = held_[key];
  if (all_streams_ >= limits_.all_streams || held.streams >= limits_.streams) return false;
  ++held.streams;
  ++all_streams_;
  return true;
}

bool ClientLedger::take(const std::string& key, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto& held = held_[key];
  if (bytes > limits_.bytes || held.bytes > limits_.bytes - bytes) return false;
  if (bytes > limits_.all_bytes || all_bytes_ > limits_.all_bytes - bytes) return false;
  held.bytes += bytes;
  all_bytes_ += bytes;
  return true;
}

void ClientLedger::give_back(const std::string& key, const Claim& claim) {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(key);
  if (at == held_.end()) return;
  at->second.bytes -= claim.bytes_;
  all_bytes_ -= claim.bytes_;
  if (claim.is_stream_) {
    --at->second.streams;
    --all_streams_;
  }
  if (--at->second.requests == 0) held_.erase(at);
}

}  // namespace fleetfit::server
