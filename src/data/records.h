#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/data/dataset.h"

namespace fleetfit::data {

/// What a file says is for training or for testing.
enum class Part : std::uint8_t { train, test, all };

/// Images of one size, held in memory.
struct Records {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::vector<std::uint8_t> pixels;  ///< image after image
  std::vector<std::int64_t> labels;
  std::vector<std::string> classes;

  std::size_t image_bytes() const { return static_cast<std::size_t>(height * width * channels); }

  /// Adds the images of another file. `invalid_input` if they are of another size.
  Status append(const Records& more);
};

/// `invalid_input`, beginning with `name`, if a label has no class.
Result<std::unique_ptr<Dataset>> dataset_of(Records records, const std::string& name);

}  // namespace fleetfit::data
