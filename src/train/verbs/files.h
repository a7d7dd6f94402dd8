#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/train/images.h"

namespace fleetfit::train {

/// A data set's images to learn from, to choose by and to test on.
struct OpenedSplits {
  std::unique_ptr<data::Dataset> train;
  std::unique_ptr<data::Dataset> validation;
  std::unique_ptr<data::Dataset> test;

  ImageSplits view() const { return {.train = *train, .validation = *validation, .test = *test}; }
};

Result<OpenedSplits> open_splits(const std::string& spec);

/// `invalid_input` if no file can be there, which one would rather hear before hours of work.
Status check_output(const std::filesystem::path& output);

}  // namespace fleetfit::train
