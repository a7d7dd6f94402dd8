#include "server/clients/fair_queue.h"

#include <utility>

namespace fleetfit::server {

void FairQueue::push(const std::string& address, const Item& item) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    auto& items = waiting_[address];
    if (items.empty()) turns_.push_back(address);
    items.push_back(item);
  }
  changed_.notify_one();
}

std::optional<FairQueue::Item> FairQueue::pop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !turns_.empty(); });
  if (turns_.empty()) return std::nullopt;
  auto address = std::move(turns_.front());
  turns_.pop_front();
  const auto at = waiting_.find(address);
  const auto item = at->second.front();
  at->second.pop_front();
  if (at->second.empty()) {
    waiting_.erase(at);
  } else {
    turns_.push_back(std::move(address));
  }
  return item;
}

void FairQueue::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    waiting_.clear();
    turns_.clear();
  }
  changed_.notify_all();
}

}  // namespace fleetfit::server
