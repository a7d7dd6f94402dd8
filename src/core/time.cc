#include "fleetfit/core/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace fleetfit::core {
namespace {

/// A number of just so many digits at a place; -1 if there is none.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  int number = -1;
  const auto part = text.substr(std::min(at, text.size()), count);
  if (part.size() != count || part.front() < '0' || part.front() > '9') return -1;
  const auto read = std::from_chars(part.data(), part.data() + part.size(), number);
  return read.ptr == part.data() + part.size() ? number : -1;
}

/// ".25Z" or "Z" as milliseconds; -1 on another text.
int fraction_ms(std::string_view text) {
  if (text == "Z") return 0;
  if (text.size() < 3 || text.front() != '.' || text.back() != 'Z') return -1;
  int ms = 0;
  int unit = 100;
  for (const char c : text.substr(1, text.size() - 2)) {
    if (c < '0' || c > '9') return -1;
    ms += (c - '0') * unit;
    unit /= 10;
  }
  return ms;
}

}  // namespace

std::string time_text(Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

Result<Time> parse_time(std::string_view text) {
  using namespace std::chrono;
  const auto refused = refuse(fmt::format(
      "expected a time such as 2026-11-16T08:00:00.000Z, not \"{}\"", text.substr(0, 40)));
  constexpr std::size_t kSeconds = 19;
  if (text.size() <= kSeconds || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
      text[13] != ':' || text[16] != ':') {
    return refused;
  }
  const int month_number = digits(text, 5, 2);
  const int day_number = digits(text, 8, 2);
  const int hour = digits(text, 11, 2);
  const int minute = digits(text, 14, 2);
  const int second = digits(text, 17, 2);
  const int ms = fraction_ms(text.substr(kSeconds));
  const auto date = year(digits(text, 0, 4)) / month(static_cast<unsigned>(month_number)) /
                    day(static_cast<unsigned>(day_number));
  if (digits(text, 0, 4) < 1970 || month_number < 0 || day_number < 0 || !date.ok() || hour < 0 ||
      hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 || ms < 0) {
    return refused;
  }
  return Time(sys_days(date)) + hours(hour) + minutes(minute) + seconds(second) + milliseconds(ms);
}

}  // namespace fleetfit::core
