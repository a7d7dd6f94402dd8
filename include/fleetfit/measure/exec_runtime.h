#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/measure/runtime.h"

/// Runtimes that are other programs: how such a program is started and asked, and how a program
/// becomes one.
namespace fleetfit::measure {

/// How long a program may take to answer.
struct AnswerTimes {
  std::chrono::milliseconds info{30'000};  ///< its start included
  std::chrono::milliseconds load{300'000};
  std::chrono::milliseconds run{300'000};  ///< all runs of one request; also of a computation
};

/// For who gives each model this much time. To start, and to run what one request asks for, a
/// program gets that time; to load ten times as much, as many try out kernels then. All of them get
/// 10 s more, which a busy machine may need, and no more than without a limit; what is longer than
/// that for a single model may also be waited for as long.
AnswerTimes answers_within(double max_time_s);

struct ExecRuntimeOptions {
  std::vector<std::string> command = {};  ///< the program and its arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to ours
  AnswerTimes timeouts = {};
  std::stop_token stop = {};  ///< ends all waiting at once; the program is then killed
  /// Called with the id of each process right after its start, before it is asked anything: the
  /// place to put it under limits. Its error is the error of the start.
  std::function<Status(int pid)> prepare = {};
};

/// A runtime that is another program (docs/formats/runtime.md). Starts it and asks who it is: fails
/// with `not_found` or `io` if it cannot be started, with what `prepare` says, and with
/// `device_failed` if it does not speak the protocol.
///
/// A program that hangs, dies or speaks nonsense fails the call with `device_failed`, the reason
/// and the end of its stderr; it is killed with all that it started, and the next `load` starts it
/// again. So does one that reports times which cannot be: they are above 0, and together no longer
/// than their request took. A call that is to stop fails with `cancelled`.
Result<std::unique_ptr<Runtime>> start_exec_runtime(ExecRuntimeOptions options);

/// The words of a command line: blanks separate them, '…' and "…" keep blanks, a backslash takes
/// the next character as it is (not within '…'). Nothing else is special. Fails with
/// `invalid_input` if there is no word or a quote is not closed.
Result<std::vector<std::string>> split_command(std::string_view line);

/// The command that starts ONNX Runtime as a runtime for `start_exec_runtime`. Its program is
/// looked for in $FLEETFIT_RUNTIMES/onnxruntime if that is set; else beside the running program,
/// where a build tree and an installation keep it. Fails with `not_found`, saying how to install
/// it.
Result<std::vector<std::string>> onnxruntime_command();

/// The other side of `start_exec_runtime`, which makes a program of a runtime in this process: the
/// reply to one request line, without a line end. Whatever the line holds, there is a reply.
std::string answer_request(Runtime& runtime, std::string_view line);

/// Answers requests, a line each, until the input ends; requests of more than a megabyte are
/// answered with an error. Fails with `io` if a reply cannot be written. Nothing else of the
/// process may write to `out` meanwhile.
Status serve_runtime(Runtime& runtime, std::istream& in, std::ostream& out);

}  // namespace fleetfit::measure
