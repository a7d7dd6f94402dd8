#include "fleetfit/core/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "fleetfit/core/text.h"

namespace fleetfit::core {

namespace {

// What is longer is read by nobody, and is more likely the content of a file.
constexpr std::size_t kLongestMessage = 1000;

}  // namespace

std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return visible_in_line(text);
}

std::string last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of("\n\r ") + 1);
  return one_line(std::string(text.substr(text.rfind('\n') + 1)));
}

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input:
    case ErrorCode::unsupported:
    case ErrorCode::not_found:
      return kBadInput;
    default:
      return kFailed;
  }
}

std::string message_line(std::string_view message) {
  return shortened(one_line(std::string(message)), kLongestMessage);
}

void say(std::string_view message) {
  constexpr std::string_view kProgram = "fleetfit: ";
  fmt::print(stderr, "{}{}\n", kProgram,
             shortened(one_line(std::string(message)), kLongestMessage - kProgram.size()));
}

int report(const std::string& message, int status) {
  say(message);
  return status;
}

int report(const Error& error) { return report(error.message, exit_status(error.code)); }

int run_guarded(const std::function<int()>& program) {
  try {
    const int status = program();
    if (std::fflush(stdout) != 0 && status == kDone)
      return report("standard output cannot be written", kFailed);
    return status;
  } catch (const std::bad_alloc&) {
    return report("out of memory", kFailed);
  } catch (const std::exception& error) {
    return report(fmt::format("internal error: {}", error.what()), kFailed);
  }
}

}  // namespace fleetfit::core
