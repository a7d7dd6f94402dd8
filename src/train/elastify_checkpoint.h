#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/train/elastify.h"

namespace fleetfit::train {

/// How far elastification has come.
struct ElastifyCheckpoint {
  std::string subject = {};  ///< of what; must be the same to go on
  std::size_t stage = 0;     ///< the next step: its stage, epoch and number
  int epoch = 0;
  std::int64_t step = 0;
  double loss_sum = 0;  ///< of the epoch's steps so far
  double elapsed_s = 0;
  std::vector<ElastifyEpoch> epochs = {};  ///< that are finished
  std::string weights = {};                ///< a TorchSupernet's state
};

/// A line of JSON, then the weights. Replaced whole; damage is found when it is read.
Status write_checkpoint(const ElastifyCheckpoint& checkpoint, const std::filesystem::path& file);
Result<ElastifyCheckpoint> read_checkpoint(const std::filesystem::path& file);

}  // namespace fleetfit::train
