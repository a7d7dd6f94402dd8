#include "fleetfit/core/progress_for_people.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "fleetfit/core/program.h"

namespace fleetfit::core {
namespace {

class MessageLines final : public Progress {
 public:
  void receive(const ProgressEvent& event) override {
    if (event.kind == ProgressKind::message)
      fmt::print(stderr, "{}\n", one_line(std::string(event.text)));
  }
};

}  // namespace

std::unique_ptr<Progress> make_progress_for_people(const Clock& clock,
                                                   const ProgressForPeopleOptions& options) {
  if (!options.quiet && ::isatty(STDERR_FILENO) == 0) return std::make_unique<MessageLines>();
  return make_terminal_progress(clock, {.quiet = options.quiet});
}

}  // namespace fleetfit::core
