#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/network_parts.h"

namespace fleetfit::train {

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
