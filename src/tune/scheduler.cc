#include "tune/scheduler.h"

namespace fleetfit::tune {
namespace {

/// Every trial gets the largest budget at once.
class NoScheduler final : public Scheduler {
 public:
  explicit NoScheduler(std::size_t levels) : levels_(levels) {}

  Place first_place(std::size_t /*number*/) override { return {.level = levels_ - 1}; }
  void judged(const Standing& /*standing*/, std::size_t /*bracket*/,
              std::size_t /*level*/) override {}
  void changed(const Trial& /*trial*/, const std::optional<TrialStatus>& /*before*/,
               const TrialStatus& /*now*/) override {}
  std::optional<End> next_end(const Trials& /*all*/) override { return std::nullopt; }
  std::optional<Promote> next_promotion(const Trials& /*all*/) override { return std::nullopt; }

 private:
  std::size_t levels_;
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const SchedulerOptions& options) {
  switch (options.kind) {
    case SchedulerKind::successive_halving:
    case SchedulerKind::hyperband:
      return make_halving(options);
    case SchedulerKind::asha:
      return make_asha(options);
    case SchedulerKind::median:
      return make_median(options);
    case SchedulerKind::none:
      break;
  }
  return std::make_unique<NoScheduler>(options.levels);
}

}  // namespace fleetfit::tune
