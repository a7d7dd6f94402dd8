#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
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

/// `invalid_input`, naming the file and what differs, unless a checkpoint's notes on what is
/// trained have all that is trained now.
Status check_identity(const nlohmann::json& then, const nlohmann::json& now,
                      const std::string& file);

}  // namespace fleetfit::train
