#include "tune/observation_queue.h"

namespace fleetfit::tune {

void ObservationQueue::expect(std::int64_t order, std::size_t trial, std::size_t level) {
  const Source source = {trial, level};
  if (orders_.emplace(source, order).second && order > 0) {
    waiting_.emplace(Place(order, source), std::nullopt);
  }
}

void ObservationQueue::fill(Observation observation) {
  const Source source = {observation.trial, observation.level};
  const auto order = orders_.find(source);
  if (order == orders_.end()) return;
  if (order->second > 0) {
    waiting_[{order->second, source}] = std::move(observation);
  } else {
    uncounted_.push_back(std::move(observation));
  }
  orders_.erase(order);
}

void ObservationQueue::drop(std::size_t trial, std::size_t level) {
  const Source source = {trial, level};
  const auto order = orders_.find(source);
  if (order == orders_.end()) return;
  waiting_.erase({order->second, source});
  orders_.erase(order);
}

void ObservationQueue::flush(Sampler& sampler) {
  for (const Observation& observation : uncounted_) sampler.tell(observation);
  uncounted_.clear();
  while (!waiting_.empty() && waiting_.begin()->second) {
    sampler.tell(*waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  }
}

}  // namespace fleetfit::tune
