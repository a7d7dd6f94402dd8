#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/core/temporary_folder.h"

namespace fleetfit::measure {

/// A folder tree in the format of the kernel's /proc and /sys: one file for each value, ending in a
/// line end.
class KernelTree {
 public:
  const std::filesystem::path& root() const { return folder_.path(); }

  void put(const std::filesystem::path& file, std::string_view value) const {
    std::filesystem::create_directories((root() / file).parent_path());
    std::ofstream(root() / file, std::ios::binary) << value << '\n';
  }

  std::string get(const std::filesystem::path& file) const {
    std::ostringstream text;
    text << std::ifstream(root() / file).rdbuf();
    auto value = text.str();
    while (!value.empty() && value.back() == '\n') value.pop_back();
    return value;
  }

  bool has(const std::filesystem::path& file) const {
    return std::filesystem::exists(root() / file);
  }

 private:
  core::TemporaryFolder folder_;
};

}  // namespace fleetfit::measure
