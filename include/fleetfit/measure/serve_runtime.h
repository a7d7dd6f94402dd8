#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "fleetfit/measure/runtime.h"

/// The other side of `start_exec_runtime`: makes a program of a runtime in this process.
namespace fleetfit::measure {

/// The reply to one request line, without a line end. Whatever the line holds, there is a reply.
std::string answer_request(Runtime& runtime, std::string_view line);

/// Answers requests, a line each, until the input ends; requests of more than a megabyte are
/// answered with an error. Fails with `io` if a reply cannot be written. Nothing else of the
/// process may write to `out` meanwhile.
Status serve_runtime(Runtime& runtime, std::istream& in, std::ostream& out);

}  // namespace fleetfit::measure
