#include "fleetfit/tune/patience.h"

#include <fmt/format.h>

namespace fleetfit::tune {

using std::chrono::milliseconds;

GrowingPause pause_between_questions(const store::StudyStore& store) {
  constexpr milliseconds kWoken{1000};
  return store.hears_of_changes() ? GrowingPause(kWoken) : GrowingPause();
}

bool Patience::waited(const Error& error) {
  constexpr milliseconds kLongest{2000};
  if (!waiting_ && say_)
    say_(fmt::format("waiting until the store can be used again: {}", error.message));
  waiting_ = true;
  const auto pause = std::exchange(pause_, std::min(pause_ * 2, kLongest));
  return sleep_unless_stopped(pause, stop_);
}

void Patience::answered() {
  if (waiting_ && say_) say_("the store can be used again");
  waiting_ = false;
  pause_ = milliseconds(100);
}

}  // namespace fleetfit::tune
