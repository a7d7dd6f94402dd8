#include "fleetfit/core/result.h"

namespace fleetfit::core {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input:
      return "invalid_input";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::io:
      return "io";
    case ErrorCode::device_failed:
      return "device_failed";
    case ErrorCode::unstable:
      return "unstable";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::internal:
      break;
  }
  return "internal";
}

}  // namespace fleetfit::core
