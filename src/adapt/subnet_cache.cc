#include "fleetfit/adapt/subnet_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fleetfit::adapt {
namespace {

// What runs, and what is switched to next: without the second, memory that is too small would end
// all switching.
constexpr std::size_t kAlwaysKept = 2;

}  // namespace

SubnetCache::SubnetCache(SubnetPreparer& preparer, std::size_t memory_bytes)
    : preparer_(preparer),
      memory_bytes_(memory_bytes),
      worker_([this](const std::stop_token& stop) { work(stop); }) {}

SubnetCache::~SubnetCache() {
  worker_.request_stop();
  worker_.join();
}

SubnetCache::Handle SubnetCache::find(const std::string& subnet) {
  const std::lock_guard lock(mutex_);
  const auto found = ready_.find(subnet);
  if (found == ready_.end()) return nullptr;
  touch(subnet);
  return found->second.handle;
}

void SubnetCache::want(std::vector<std::string> subnets) {
  const std::lock_guard lock(mutex_);
  if (subnets == wanted_) return;
  wanted_ = std::move(subnets);
  prepared_for_nothing_ = wanted_.size();
  changed_.notify_all();
}

void SubnetCache::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ && next_to_prepare() == nullptr; });
}

std::vector<SubnetCache::Failure> SubnetCache::take_failures() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failures_, {});
}

std::size_t SubnetCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t SubnetCache::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void SubnetCache::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return next_to_prepare() != nullptr; })) {
    const std::string subnet = *next_to_prepare();
    busy_ = true;
    lock.unlock();
    auto prepared = preparer_.prepare(subnet);
    lock.lock();
    if (prepared) {
      keep(subnet, *std::move(prepared));
    } else {
      failures_.push_back({subnet, prepared.error()});
      failed_.emplace(subnet, std::move(prepared.error()));
    }
    busy_ = false;
    changed_.notify_all();
  }
}

const std::string* SubnetCache::next_to_prepare() const {
  const std::size_t end = std::min(prepared_for_nothing_, wanted_.size());
  for (std::size_t i = 0; i < end; ++i) {
    if (!ready_.contains(wanted_[i]) && !failed_.contains(wanted_[i])) return &wanted_[i];
  }
  return nullptr;
}

void SubnetCache::keep(const std::string& subnet, Handle handle) {
  if (ready_.contains(subnet)) return;
  const std::size_t bytes = handle->bytes();
  ready_.emplace(subnet, Ready{std::move(handle), bytes});
  bytes_ += bytes;
  touch(subnet);
  make_room();
  if (!ready_.contains(subnet))
    prepared_for_nothing_ = std::min(prepared_for_nothing_, rank(subnet));
  peak_bytes_ = std::max(peak_bytes_, bytes_);
}

void SubnetCache::make_room() {
  while (bytes_ > memory_bytes_) {
    auto victim = by_use_.begin();
    for (auto place = by_use_.begin(); place != by_use_.end(); ++place) {
      if (rank(*place) >= rank(*victim)) victim = place;  // of equals the one used longest ago
    }
    if (rank(*victim) < kAlwaysKept) return;
    const auto ready = ready_.find(*victim);
    bytes_ -= ready->second.bytes;
    ready_.erase(ready);
    by_use_.erase(victim);
  }
}

void SubnetCache::touch(const std::string& subnet) {
  const auto place = std::ranges::find(by_use_, subnet);
  if (place != by_use_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, place);
  } else {
    by_use_.push_front(subnet);
  }
}

std::size_t SubnetCache::rank(const std::string& subnet) const {
  const auto place = std::ranges::find(wanted_, subnet);
  if (place == wanted_.end()) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(place - wanted_.begin());
}

}  // namespace fleetfit::adapt
