#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace fleetfit::core {

/// What kind of thing went wrong; the command line maps it to an exit status.
enum class ErrorCode {
  invalid_input,  ///< a file, flag, field or message that breaks its format
  unsupported,    ///< valid, but nothing here can do it
  not_found,      ///< a name or file that does not exist
  io,             ///< the system refused to read, write or start something
  device_failed,  ///< a device or runtime died, hung or spoke nonsense
  unstable,       ///< a measurement that did not settle
  cancelled,      ///< the user asked to stop
  internal,       ///< a bug in fleetfit
};

/// The code's name as written in messages and JSON, e.g. "invalid_input".
std::string_view to_string(ErrorCode code);

/// A failure that was expected to be possible. `message` is one sentence that names the file, node
/// or field.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;

/// A Result without a value: `return {};` says that all went well.
using Status = Result<void>;

/// What a failing function returns: `return fail(ErrorCode::io, "cannot open a.onnx")`.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

/// `fail` for what a user gave and can mend.
inline tl::unexpected<Error> refuse(std::string message) {
  return fail(ErrorCode::invalid_input, std::move(message));
}

/// The same error, its message preceded by where it happened: "a.onnx: node conv1: …".
inline tl::unexpected<Error> within(std::string_view place, Error error) {
  error.message = std::string(place) + ": " + error.message;
  return tl::unexpected<Error>(std::move(error));
}

/// The same outcome, an error with its place: `FLEETFIT_ASSIGN(auto row, within(name, read(row)))`.
template <class T>
Result<T> within(std::string_view place, Result<T> result) {
  if (!result) return within(place, std::move(result.error()));
  return result;
}

}  // namespace fleetfit::core

namespace fleetfit {
using core::Error;
using core::ErrorCode;
using core::fail;
using core::refuse;
using core::Result;
using core::Status;
}  // namespace fleetfit

/// Returns the error of an expression that gives a Result, or goes on:
/// `FLEETFIT_TRY(write_file(path, text));`
#define FLEETFIT_TRY(...) \
  FLEETFIT_TRY_AS_(FLEETFIT_NAME_(fleetfit_outcome_, __COUNTER__), __VA_ARGS__)

/// Puts the value of a Result into a new or an old variable, or returns the error:
/// `FLEETFIT_ASSIGN(auto model, import_model(path));`
#define FLEETFIT_ASSIGN(target, ...) \
  FLEETFIT_ASSIGN_AS_(FLEETFIT_NAME_(fleetfit_outcome_, __COUNTER__), target, __VA_ARGS__)

#define FLEETFIT_NAME_(stem, number) FLEETFIT_JOIN_(stem, number)
#define FLEETFIT_JOIN_(stem, number) stem##number
#define FLEETFIT_RETURN_ERROR_(outcome) \
  if (!outcome) [[unlikely]]            \
  return tl::make_unexpected(std::move(outcome).error())
#define FLEETFIT_TRY_AS_(outcome, ...) \
  do {                                 \
    auto&& outcome = (__VA_ARGS__);    \
    FLEETFIT_RETURN_ERROR_(outcome);   \
  } while (false)
#define FLEETFIT_ASSIGN_AS_(outcome, target, ...) \
  auto outcome = (__VA_ARGS__);                   \
  FLEETFIT_RETURN_ERROR_(outcome);                \
  target = *std::move(outcome)
