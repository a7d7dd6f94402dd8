#include "tune/level_record.h"

#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"

namespace fleetfit::tune {

store::LevelRecord level_record(std::int64_t level, const Budget& budget,
                                const TrialOutcome& outcome) {
  auto metrics = nlohmann::json::object();
  for (const auto& [name, value] : outcome.other) metrics[name] = value;
  auto epochs = nlohmann::json::array();
  double last = 0;  // stands for one that an epoch does not report
  for (const auto& epoch : outcome.epochs) {
    last = epoch.accuracy.value_or(last);
    epochs.push_back(last);
  }
  return {.level = level,
          .epochs = budget.epochs,
          .data_fraction = budget.data_fraction,
          .accuracy = outcome.accuracy,
          .loss = outcome.loss,
          .training_s = outcome.elapsed_s,
          .metrics = core::format_json_line(metrics),
          .epoch_values = core::format_json_line(epochs)};
}

}  // namespace fleetfit::tune
