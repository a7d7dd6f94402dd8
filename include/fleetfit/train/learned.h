#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "fleetfit/core/names.h"
#include "fleetfit/core/result.h"
#include "fleetfit/learned/model.h"
#include "fleetfit/learned/samples.h"
#include "fleetfit/train/images.h"
#include "fleetfit/train/training.h"

namespace fleetfit::train {

/// How optimizer networks learn.
enum class LearnMethod : std::uint8_t {
  supervised,    ///< from the best designs that a search has found
  unsupervised,  ///< through the performance networks
  none,          ///< no optimizer networks: for rounds of exploration
};

/// "supervised", "unsupervised", "none".
core::Names names_of(LearnMethod);

struct LearnOptions {
  LearnMethod method = LearnMethod::supervised;
  std::size_t members = 5;           ///< networks for each cost
  std::size_t accuracy_members = 3;  ///< networks for the accuracy
  std::size_t optimizers = 2;        ///< optimizer networks
  double effort = 1;                 ///< multiplies the steps of all trainings
  std::uint64_t seed = 1;
  Compute compute = Compute::cpu;
  /// Networks that are finished are kept here, so that a training that was ended goes on after
  /// them; removed at the end. Empty: nothing is kept.
  std::filesystem::path checkpoint = {};
};

/// Trains performance networks on measured designs, each but for some devices, finds on those how
/// far they can be trusted, and trains optimizer networks on real and synthetic devices. Fails as
/// `learned::check` does, and with `cancelled` if it was stopped.
Result<learned::Model> train_learned(const learned::Samples& samples, const LearnOptions& options,
                                     const TrainingContext& context);

}  // namespace fleetfit::train
