#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::train {

/// A training in its middle, as a file: docs/training.md, "Checkpoints".
struct Checkpoint {
  std::string notes;  ///< JSON: what is trained, and how far it is
  std::vector<std::vector<float>> numbers;
};

/// Replaces the file; it holds the old or the new checkpoint, never a part of one.
Status write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

/// `not_found` if there is none; `invalid_input` if it is damaged, cut short or no checkpoint.
Result<Checkpoint> read_checkpoint(const std::filesystem::path& file);

}  // namespace fleetfit::train
