#include "tune/observation_queue.h"

#include <algorithm>

namespace fleetfit::tune {

void ObservationQueue::expect(std::int64_t order, std::size_t trial, std::size_t level) {
  // What nobody counted comes after all that is known.
  if (order <= 0) order = last_order_;
  last_order_ = std::max(last_order_, order);
  const Place place = {order, count_++};
  if (places_.emplace(std::pair(trial, level), place).second) {
    waiting_.emplace(place, std::nullopt);
  }
}

void ObservationQueue::fill(Observation observation) {
  const auto place = places_.find({observation.trial, observation.level});
  if (place == places_.end()) return;
  waiting_[place->second] = std::move(observation);
  places_.erase(place);
}

void ObservationQueue::drop(std::size_t trial, std::size_t level) {
  const auto place = places_.find({trial, level});
  if (place == places_.end()) return;
  waiting_.erase(place->second);
  places_.erase(place);
}

void ObservationQueue::flush(Sampler& sampler) {
  while (!waiting_.empty() && waiting_.begin()->second) {
    sampler.tell(*waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  }
}

}  // namespace fleetfit::tune
