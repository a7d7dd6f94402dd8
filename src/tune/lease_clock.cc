#include <cmath>

#include "fleetfit/tune/worker.h"

namespace fleetfit::tune {

using std::chrono::milliseconds;

LeaseClock::LeaseClock(const core::Clock& clock, milliseconds lease)
    : clock_(clock), lease_(lease), last_now_(clock.now()), last_date_(clock.date()) {}

store::Time LeaseClock::run_out_before() {
  const auto now = clock_.now();
  const auto date = clock_.date();
  const auto jump = (date - last_date_) - (now - last_now_);
  last_now_ = now;
  last_date_ = date;
  // Others will renew their leases by the new date before they count again.
  if (std::chrono::abs(jump) > lease_ / 2) quiet_until_ = now + 2 * lease_;
  if (now < quiet_until_) return store::Time{};
  return std::chrono::floor<milliseconds>(date) - lease_;
}

store::Time LeaseClock::end_of_lease() const { return date() + lease_; }

store::Time LeaseClock::date() const { return std::chrono::floor<milliseconds>(clock_.date()); }

}  // namespace fleetfit::tune
