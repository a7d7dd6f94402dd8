#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/train/elastify.h"

namespace fleetfit::train {

/// How far an elastification has come; the notes of its checkpoints.
struct ElastifyPlace {
  std::string subject = {};  ///< what is learned from what; must be the same to go on
  std::size_t stage = 0;     ///< the next step: its stage, epoch and number
  int epoch = 0;
  std::int64_t step = 0;
  double loss_sum = 0;  ///< of the epoch's steps so far
  double elapsed_s = 0;
  std::vector<ElastifyEpoch> epochs = {};  ///< that are finished
};
core::Fields fields_of(const ElastifyPlace*);

std::string to_notes(const ElastifyPlace& place);

/// `name` stands for the file in messages, which are `invalid_input`.
Result<ElastifyPlace> read_notes(const std::string& notes, const std::string& name);

}  // namespace fleetfit::train
