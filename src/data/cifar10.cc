#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/sources.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"

namespace fleetfit::data {
namespace {

constexpr std::size_t kSide = 32;
constexpr std::size_t kPlane = kSide * kSide;
constexpr std::size_t kImage = 3 * kPlane;

Records empty_records() {
  return {.height = kSide,
          .width = kSide,
          .channels = 3,
          .classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
                      "ship", "truck"}};
}

std::vector<std::string> batches(Part part) {
  std::vector<std::string> names;
  if (part != Part::test) {
    for (int i = 1; i <= 5; ++i) names.push_back(fmt::format("data_batch_{}", i));
  }
  if (part != Part::train) names.emplace_back("test_batch");
  return names;
}

/// Records of a label and the planes of red, green and blue.
Status add_binary(const std::filesystem::path& file, Records& records) {
  FLEETFIT_ASSIGN(const auto content, core::read_file(file));
  constexpr std::size_t kRecord = 1 + kImage;
  if (content.empty() || content.size() % kRecord != 0)
    return fail(ErrorCode::invalid_input, fmt::format("{}: {} bytes are no records of {}",
                                                      file.string(), content.size(), kRecord));
  for (std::size_t at = 0; at < content.size(); at += kRecord) {
    records.labels.push_back(static_cast<unsigned char>(content[at]));
    for (std::size_t p = 0; p < kPlane; ++p) {
      for (std::size_t c = 0; c < 3; ++c)
        records.pixels.push_back(static_cast<unsigned char>(content[at + 1 + c * kPlane + p]));
    }
  }
  return {};
}

/// One image in each row of a picture.
Status add_rows(const std::filesystem::path& file, Records& records) {
  FLEETFIT_ASSIGN(const auto picture, read_image(file));
  if (picture.width != kPlane || picture.channels != 3)
    return fail(ErrorCode::invalid_input, fmt::format("{}: rows of {} pixels are no images of {}",
                                                      file.string(), picture.width, kPlane));
  records.pixels.insert(records.pixels.end(), picture.pixels.begin(), picture.pixels.end());
  return {};
}

Status add_labels(const std::filesystem::path& file, Records& records) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  FLEETFIT_ASSIGN(const auto items, core::JsonView(document, file.string()).items());
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(const auto label, item.as_integer({.min = 0, .max = 9}));
    records.labels.push_back(label);
  }
  return {};
}

Status add_package_labels(const std::filesystem::path& folder, Part part, Records& records) {
  // The package spells it so.
  if (part != Part::test) {
    FLEETFIT_TRY(add_labels(folder / "train_lables.json", records));
  }
  if (part != Part::train) {
    FLEETFIT_TRY(add_labels(folder / "test_lables.json", records));
  }
  const auto images = records.pixels.size() / kImage;
  if (images == records.labels.size()) return {};
  return fail(ErrorCode::invalid_input, fmt::format("{}: {} images have {} labels", folder.string(),
                                                    images, records.labels.size()));
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_cifar10(const std::filesystem::path& folder, Part part) {
  std::error_code ignored;
  const bool package = std::filesystem::exists(folder / "test_batch.png", ignored);
  auto records = empty_records();
  for (const auto& name : batches(part)) {
    FLEETFIT_TRY(package ? add_rows(folder / (name + ".png"), records)
                         : add_binary(folder / (name + ".bin"), records));
  }
  if (package) {
    FLEETFIT_TRY(add_package_labels(folder, part, records));
  }
  return dataset_of(std::move(records), folder.string());
}

}  // namespace fleetfit::data
