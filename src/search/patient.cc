#include <memory>
#include <optional>
#include <utility>

#include "fleetfit/search/strategy.h"

namespace fleetfit::search {
namespace {

class Patient final : public Strategy {
 public:
  Patient(std::unique_ptr<Strategy> strategy, std::size_t patience)
      : strategy_(std::move(strategy)), patience_(patience) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    if (idle_ < patience_) strategy_->propose(designs);
  }

  void tell(const Outcome& outcome) override {
    ++idle_;
    for (const auto& score : outcome.scores) {
      if (best_ && !(score < *best_)) continue;
      best_ = score;
      idle_ = 0;
    }
    strategy_->tell(outcome);
  }

 private:
  std::unique_ptr<Strategy> strategy_;
  std::size_t patience_;
  std::size_t idle_ = 0;
  std::optional<Score> best_;
};

}  // namespace

std::unique_ptr<Strategy> make_patient(std::unique_ptr<Strategy> strategy, std::size_t patience) {
  return std::make_unique<Patient>(std::move(strategy), patience);
}

}  // namespace fleetfit::search
