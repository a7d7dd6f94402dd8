#pragma once

#include <memory>

#include "fleetfit/core/progress.h"

namespace fleetfit::core {

struct ProgressForPeopleOptions {
  bool quiet = false;  ///< show nothing
};

/// What people see on the standard error stream: a bar if it is a terminal, else the messages
/// alone, a line each. The clock must outlive it.
std::unique_ptr<Progress> make_progress_for_people(const Clock& clock,
                                                   const ProgressForPeopleOptions& options);

}  // namespace fleetfit::core
