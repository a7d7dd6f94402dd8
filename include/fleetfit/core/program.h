#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"

/// What fleetfit's programs have in common: exit status, and errors of one line.
namespace fleetfit::core {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;    ///< the work failed, or a goal was not met
inline constexpr int kBadInput = 2;  ///< bad input or usage

/// `kBadInput` or `kFailed`.
int exit_status(ErrorCode code);

/// Names in files may hold anything; a message stays one readable line: valid UTF-8, and spaces for
/// control characters.
std::string one_line(std::string text);

/// The same with at most 1,000 characters: how a message leaves the program (`shortened` says what
/// is left out).
std::string message_line(std::string_view message);

/// What a program said last: the last line that is not blank, as one readable line.
std::string last_line(std::string_view text);

/// Puts "fleetfit: message" on the standard error stream, as one line of at most 1,000 characters
/// whatever is in the message.
void say(std::string_view message);

/// The same; gives `status` back.
int report(const std::string& message, int status);
int report(const Error& error);

/// What `main` does: runs the program and gives its exit status. What it throws, and a standard
/// output that cannot be written, is reported.
int run_guarded(const std::function<int()>& program);

}  // namespace fleetfit::core
