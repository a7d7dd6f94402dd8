#include "fleetfit/adapt/switching.h"

#include <algorithm>
#include <utility>

namespace fleetfit::adapt {

std::optional<std::size_t> best_within(std::span<const PoolEntry> entries, double limit_ms) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& entry = entries[i];
    if (entry.latency_ms > limit_ms) continue;
    if (!best || std::pair(entry.accuracy, -entry.latency_ms) >
                     std::pair(entries[*best].accuracy, -entries[*best].latency_ms)) {
      best = i;
    }
  }
  return best;
}

std::size_t quickest(std::span<const PoolEntry> entries) {
  return static_cast<std::size_t>(std::ranges::min_element(entries, {}, &PoolEntry::latency_ms) -
                                  entries.begin());
}

core::Names names_of(SwitchReason) {
  static constexpr core::Name kAll[] = {{SwitchReason::over_budget, "over budget"},
                                        {SwitchReason::room, "room"},
                                        {SwitchReason::nothing_fits, "nothing fits"}};
  return {.what = "reason to switch", .all = kAll};
}

SwitchPolicy::SwitchPolicy(std::vector<PoolEntry> entries, double budget_ms,
                           const SwitchOptions& options)
    : entries_(std::move(entries)),
      budget_ms_(budget_ms),
      options_(options),
      room_since_ms_(entries_.size()),
      wait_ms_(options.taken_back_ms) {}

std::size_t SwitchPolicy::start() const {
  return best_within(entries_, budget_ms_).value_or(quickest(entries_));
}

SwitchDecision SwitchPolicy::decide(double now_ms, const Conditions& conditions,
                                    std::size_t current) {
  last_ratio_ = conditions.ratio;
  if (climb_ && now_ms - climb_->time_ms > options_.taken_back_ms) {
    climb_.reset();  // it has proved itself
    mistake_.reset();
    wait_ms_ = options_.taken_back_ms;
  }
  SwitchDecision decision;
  if (entries_[current].latency_ms * conditions.ratio > budget_ms_) {
    forget_room();
    decision = down(conditions, current);
  } else {
    decision.target = up(now_ms, conditions, current);
    decision.reason = SwitchReason::room;
  }
  decision.search_again = ask_for_search(now_ms, decision.fits);
  if (last_switch_ms_ && now_ms - *last_switch_ms_ < options_.min_interval_ms)
    decision.target.reset();
  return decision;
}

SwitchDecision SwitchPolicy::down(const Conditions& conditions, std::size_t current) const {
  SwitchDecision decision;
  decision.target =
      best_within(entries_, conditions.longest_within(budget_ms_, options_.caution_down));
  if (!decision.target) {
    decision.fits = false;
    decision.reason = SwitchReason::nothing_fits;
    decision.target = quickest(entries_);
  }
  if (decision.target == current) decision.target.reset();
  return decision;
}

std::optional<std::size_t> SwitchPolicy::up(double now_ms, const Conditions& conditions,
                                            std::size_t current) {
  look_for_room(now_ms, conditions, current);
  const auto target = best_with_room_for(options_.up_after_ms, now_ms);
  if (!target) return std::nullopt;
  // When a load goes, there is room for one after the other: better one switch than several.
  const auto soon = best_with_room_for(options_.up_after_ms / 2, now_ms);
  return soon == target ? target : std::nullopt;
}

void SwitchPolicy::look_for_room(double now_ms, const Conditions& conditions, std::size_t current) {
  const double longest = room_for_up(now_ms, conditions);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& entry = entries_[i];
    auto& since = room_since_ms_[i];
    if (entry.latency_ms > longest || entry.accuracy <= entries_[current].accuracy ||
        is_blocked(now_ms, conditions.ratio, i)) {
      since.reset();
    } else if (!since) {
      since = now_ms;
    }
  }
}

/// The longest estimate that there is room for.
double SwitchPolicy::room_for_up(double now_ms, const Conditions& conditions) const {
  const double limit = budget_ms_ * (1 - options_.margin);
  const double longest = conditions.longest_within(limit, options_.caution_up);
  const bool dares = !last_switch_ms_ || now_ms - *last_switch_ms_ > options_.dare_after_ms;
  return dares ? std::max(longest, limit / conditions.ratio) : longest;
}

std::optional<std::size_t> SwitchPolicy::best_with_room_for(double duration_ms,
                                                            double now_ms) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& since = room_since_ms_[i];
    if (!since || now_ms - *since < duration_ms) continue;
    if (!best || entries_[i].accuracy > entries_[*best].accuracy) best = i;
  }
  return best;
}

void SwitchPolicy::forget_room() { std::ranges::fill(room_since_ms_, std::nullopt); }

bool SwitchPolicy::is_blocked(double now_ms, double ratio, std::size_t target) const {
  if (!mistake_ || now_ms >= blocked_until_ms_) return false;
  const bool as_slow = entries_[target].latency_ms >= entries_[mistake_->target].latency_ms;
  return as_slow && ratio > mistake_->ratio * (1 - options_.margin);
}

void SwitchPolicy::switched(double now_ms, std::size_t from, std::size_t to) {
  const bool is_climb = entries_[to].latency_ms > entries_[from].latency_ms;
  if (!is_climb && climb_) {  // taken back before it had proved itself
    mistake_ = climb_;
    blocked_until_ms_ = now_ms + wait_ms_;
    wait_ms_ = std::min(2 * wait_ms_, options_.longest_wait_ms);
  }
  climb_.reset();
  if (is_climb) climb_ = Climb{now_ms, last_ratio_, to};
  last_switch_ms_ = now_ms;
  forget_room();
}

bool SwitchPolicy::ask_for_search(double now_ms, bool fits) {
  if (fits) {
    misfit_since_ms_.reset();
    return false;
  }
  if (!misfit_since_ms_) misfit_since_ms_ = now_ms;
  if (now_ms - *misfit_since_ms_ < options_.nothing_fits_ms) return false;
  if (last_search_ms_ && now_ms - *last_search_ms_ < options_.search_again_ms) return false;
  last_search_ms_ = now_ms;
  return true;
}

}  // namespace fleetfit::adapt
