#include "fleetfit/tune/patience.h"

#include <fmt/format.h>

namespace fleetfit::tune {

using std::chrono::milliseconds;

core::GrowingPause pause_between_questions(const store::StudyStore& store) {
  return {milliseconds(5), milliseconds(store.hears_of_changes() ? 1000 : 100)};
}

bool Patience::waited(const Error& error) {
  if (!waiting_ && say_)
    say_(fmt::format("waiting until the store can be used again: {}", error.message));
  waiting_ = true;
  return sleep_unless_stopped(pause_.take(), stop_);
}

void Patience::answered() {
  if (waiting_ && say_) say_("the store can be used again");
  waiting_ = false;
  pause_.something_happened();
}

}  // namespace fleetfit::tune
