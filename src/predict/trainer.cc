#include "predict/trainer.h"

#include <fmt/format.h>

#include "fleetfit/core/companion.h"

namespace fleetfit::predict {

Status run_trainer(const std::vector<std::string>& arguments, const std::stop_token& stop) {
  constexpr std::string_view kTrainer = "fleetfit-train";
  FLEETFIT_ASSIGN(const auto done, core::run_companion(kTrainer, arguments, {.stop = stop}));
  // One that was stopped says so by its status, but has written what it had.
  if (done.status.succeeded() || stop.stop_requested()) return {};
  return fail(ErrorCode::internal, fmt::format("{} failed: {}", kTrainer, to_string(done.status)));
}

}  // namespace fleetfit::predict
