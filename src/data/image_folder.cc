#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "data/sources.h"

namespace fleetfit::data {
namespace {

namespace fs = std::filesystem;

struct File {
  fs::path path;
  std::int64_t label = 0;
};

class ImageFolder : public Dataset {
 public:
  ImageFolder(std::vector<File> files, std::vector<std::string> classes)
      : files_(std::move(files)), classes_(std::move(classes)) {}

  std::size_t size() const override { return files_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }

  Result<Item> item(std::size_t index) const override {
    FLEETFIT_ASSIGN(auto image, read_image(files_[index].path));
    return Item{.image = std::move(image), .label = files_[index].label};
  }

 private:
  std::vector<File> files_;
  std::vector<std::string> classes_;
};

bool is_image_name(const fs::path& path) {
  auto extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg" || extension == ".bmp";
}

/// What lies in a folder, by name; hidden entries are left out.
Result<std::vector<fs::path>> entries(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  std::vector<fs::path> paths;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!entry->path().filename().string().starts_with('.')) paths.push_back(entry->path());
  }
  if (error) {
    const bool missing = error == std::errc::no_such_file_or_directory;
    return fail(missing ? ErrorCode::not_found : ErrorCode::io,
                fmt::format("{}: {}", folder.string(), error.message()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

Result<std::vector<std::string>> class_names(const fs::path& folder) {
  FLEETFIT_ASSIGN(const auto all, entries(folder));
  std::vector<std::string> names;
  for (const auto& path : all) {
    if (is_folder(path)) names.push_back(path.filename().string());
  }
  return names;
}

/// Adds the images of all classes that a folder has. Names of classes are sorted.
Status add_files(const fs::path& folder, const std::vector<std::string>& classes,
                 std::vector<File>& files) {
  FLEETFIT_ASSIGN(const auto here, class_names(folder));
  for (const auto& name : here) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name)
      return fail(
          ErrorCode::invalid_input,
          fmt::format("{}: there are no images of class '{}' for training", folder.string(), name));
    FLEETFIT_ASSIGN(const auto images, entries(folder / name));
    for (const auto& path : images) {
      if (is_image_name(path)) files.push_back({.path = path, .label = found - classes.begin()});
    }
  }
  return {};
}

}  // namespace

bool has_parts(const fs::path& folder) {
  return is_folder(folder / "train") && is_folder(folder / "test");
}

Result<std::unique_ptr<Dataset>> open_image_folder(const fs::path& folder, Part part) {
  const bool parts = has_parts(folder);
  FLEETFIT_ASSIGN(const auto classes, class_names(parts ? folder / "train" : folder));
  std::vector<fs::path> folders;
  if (!parts) folders.push_back(folder);
  if (parts && part != Part::test) folders.push_back(folder / "train");
  if (parts && part != Part::train) folders.push_back(folder / "test");
  std::vector<File> files;
  for (const auto& place : folders) {
    FLEETFIT_TRY(add_files(place, classes, files));
  }
  if (files.empty())
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{}: no PNG, JPEG or BMP file in a folder of its class", folder.string()));
  return std::make_unique<ImageFolder>(std::move(files), classes);
}

}  // namespace fleetfit::data
