#include "fleetfit/tune/patience.h"

#include <fmt/format.h>

#include "fleetfit/store/gone.h"

namespace fleetfit::tune {
namespace {

using std::chrono::milliseconds;

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

core::GrowingPause pause_between_questions(const store::StudyStore& store) {
  return {milliseconds(5), milliseconds(store.hears_of_changes() ? 1000 : 100)};
}

bool Patience::may_mend(const Error& error) {
  return error.code == ErrorCode::io && !store::cannot_come_back(error);
}

bool Patience::waited(Error& error) {
  constexpr std::chrono::seconds kBetweenWords{10};
  const auto now = clock_.now();
  if (!began_) {
    began_ = now;
    next_words_ = now + kBetweenWords;
    const auto& say = options_.warn ? options_.warn : say_;
    if (say) say(fmt::format("waiting until the store can be used again: {}", error.message));
  }
  const auto waited = now - *began_;
  if (options_.most && waited >= *options_.most) {
    error.message += fmt::format("; it did not come back within {:.3g} s", seconds_of(waited));
    return false;
  }
  if (now >= next_words_) {
    next_words_ = now + kBetweenWords;
    if (say_)
      say_(fmt::format("the store has been away for {:.0f} s: {}", seconds_of(waited),
                       error.message));
  }
  return sleep_unless_stopped(pause_.take(), stop_);
}

void Patience::answered() {
  if (began_ && say_) say_("the store can be used again");
  began_.reset();
  pause_.something_happened();
}

}  // namespace fleetfit::tune
