#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::data {

/// A regular file in an archive.
struct TarEntry {
  std::string name;
  std::size_t offset = 0;  ///< of its content
  std::size_t size = 0;
};

/// The regular files of a tar archive in their order: ustar, with GNU's long names; folders, links
/// and notes of other kinds are skipped. `invalid_input`, naming the offset, if it is damaged or
/// cut short.
Result<std::vector<TarEntry>> read_tar(std::string_view archive);

}  // namespace fleetfit::data
