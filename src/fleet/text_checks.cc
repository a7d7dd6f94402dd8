#include "fleet/text_checks.h"

#include <algorithm>

namespace fleetfit::fleet {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_of_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-'; }

}  // namespace

Status check_time(std::string_view time) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  bool good =
      time.size() > kShape.size() && time.size() <= kShape.size() + 11 && time.back() == 'Z';
  for (std::size_t i = 0; good && i < kShape.size(); ++i)
    good = kShape[i] == '0' ? is_digit(time[i]) : time[i] == kShape[i];
  if (good) {
    const auto fraction = time.substr(kShape.size(), time.size() - kShape.size() - 1);
    good = fraction.empty() || (fraction.size() > 1 && fraction.front() == '.' &&
                                std::ranges::all_of(fraction.substr(1), is_digit));
  }
  if (good) return {};
  return refuse("expected a time such as 2026-11-16T08:00:00.000Z");
}

Status check_word(std::string_view word) {
  constexpr std::size_t kMost = 40;
  if (!word.empty() && word.size() <= kMost && std::ranges::all_of(word, is_of_word)) return {};
  return refuse("expected a word of at most 40 letters and digits");
}

Status check_file_name(std::string_view name) {
  constexpr std::size_t kMost = 200;
  const bool good =
      !name.empty() && name.size() <= kMost && !name.starts_with('.') &&
      std::ranges::none_of(name, [](unsigned char c) { return c == '/' || c == '\\' || c < ' '; });
  if (good) return {};
  return refuse("expected the name of a file, without folders");
}

Status check_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  const bool good = !name.empty() && name.size() <= kMost &&
                    (is_letter(name.front()) || is_digit(name.front())) &&
                    std::ranges::all_of(name, is_of_word);
  if (good) return {};
  return refuse(
      "expected a name of 1 to 100 letters, digits, '.', '_' and '-' that starts with a letter or "
      "digit");
}

Status check_hash(std::string_view hash) {
  constexpr std::size_t kDigits = 64;
  const bool good = hash.size() == kDigits && std::ranges::all_of(hash, [](char c) {
                      return is_digit(c) || (c >= 'a' && c <= 'f');
                    });
  if (good) return {};
  return refuse("expected a SHA-256 of 64 digits from 0 to f");
}

}  // namespace fleetfit::fleet
