#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/network_parts.h"

namespace fleetfit::train {

/// While a training runs, it is kept at least this often.
inline constexpr std::chrono::seconds kBetweenCheckpoints{60};

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

/// The networks of a training that are finished, kept in a file, so that a training that was ended
/// at any moment goes on after them. Safe to use from many threads.
class FinishedNetworks {
 public:
  /// `identity` says what is trained; what was kept of another training is not looked at. An empty
  /// file name: nothing is kept.
  FinishedNetworks(std::filesystem::path file, std::string identity);

  std::optional<std::vector<predict::DenseLayer>> find(const std::string& name) const;

  Status keep(const std::string& name, std::vector<predict::DenseLayer> layers);

  /// When all is done.
  void remove() const;

 private:
  void read();
  Status write() const;

  std::filesystem::path file_;
  std::string identity_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<predict::DenseLayer>> networks_;  // guarded by mutex_
};

}  // namespace fleetfit::train
