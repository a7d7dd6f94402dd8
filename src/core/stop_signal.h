#pragma once

#include <stop_token>

#include "fleetfit/core/file_descriptor.h"

namespace fleetfit::core {

/// A descriptor that becomes readable when a stop is asked for, so that nobody has to look again
/// and again.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop);

  /// -1 if nobody can ask for a stop.
  int descriptor() const { return event_.get(); }

 private:
  struct Raise {
    int event;
    void operator()() const;
  };

  FileDescriptor event_;
  std::stop_callback<Raise> callback_;  // gone before the event is closed
};

}  // namespace fleetfit::core
