#include <fmt/format.h>

#include <algorithm>

#include "data/archive.h"
#include "data/sources.h"

namespace fleetfit::data {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 31;

struct IdxFile {
  std::vector<std::int64_t> extents;
  std::string_view values;
};

tl::unexpected<Error> broken(std::string problem) {
  return fail(ErrorCode::invalid_input, std::move(problem));
}

/// Two zeros, type (8: unsigned bytes), number of dimensions, their extents in 32 bits, values.
Result<IdxFile> read_idx(std::string_view file) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(file[i]); };
  if (file.size() < 4 || byte(0) != 0 || byte(1) != 0) return broken("no IDX file");
  if (byte(2) != 8) return broken(fmt::format("IDX of type {}; only bytes (8) are known", byte(2)));
  const std::size_t rank = byte(3);
  if (file.size() < 4 + rank * 4) return broken("the IDX file is cut short");
  IdxFile idx;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t extent = 0;
    for (std::size_t i = 0; i < 4; ++i) extent = extent << 8 | byte(4 + d * 4 + i);
    if (extent > 0 && count > kMostExtent / extent) return broken("the IDX file says it is huge");
    count *= extent;
    idx.extents.push_back(extent);
  }
  idx.values = file.substr(4 + rank * 4);
  if (idx.values.size() != static_cast<std::size_t>(count))
    return broken(fmt::format("the IDX file holds {} bytes of {}", idx.values.size(), count));
  return idx;
}

std::vector<std::string> numbered_classes(const std::vector<std::int64_t>& labels) {
  const auto most = labels.empty() ? -1 : *std::max_element(labels.begin(), labels.end());
  std::vector<std::string> names;
  for (std::int64_t i = 0; i <= most; ++i) names.push_back(std::to_string(i));
  return names;
}

Result<Records> read_pair(const std::filesystem::path& folder, const std::string& prefix) {
  const auto image_file = folder / (prefix + "-images-idx3-ubyte");
  FLEETFIT_ASSIGN(const auto images, read_maybe_compressed(image_file));
  FLEETFIT_ASSIGN(const auto labels,
                  read_maybe_compressed(folder / (prefix + "-labels-idx1-ubyte")));
  FLEETFIT_ASSIGN(auto records, core::within(image_file.string(), parse_idx(images, labels)));
  return records;
}

}  // namespace

Result<Records> parse_idx(const std::string& images, const std::string& labels) {
  FLEETFIT_ASSIGN(const auto pictures, read_idx(images));
  FLEETFIT_ASSIGN(const auto numbers, core::within("labels", read_idx(labels)));
  const auto& extents = pictures.extents;
  const bool is_image =
      extents.size() == 3 || (extents.size() == 4 && (extents[3] == 1 || extents[3] == 3));
  if (!is_image || std::any_of(extents.begin() + 1, extents.end(), [](auto e) { return e == 0; }))
    return broken(fmt::format("an IDX file of {} dimensions holds no images", extents.size()));
  if (numbers.extents != std::vector{extents[0]})
    return broken(fmt::format("{} images have {} labels", extents[0], numbers.values.size()));
  Records records{
      .height = extents[1], .width = extents[2], .channels = extents.size() == 4 ? extents[3] : 1};
  records.pixels.assign(pictures.values.begin(), pictures.values.end());
  for (const char label : numbers.values)
    records.labels.push_back(static_cast<unsigned char>(label));
  records.classes = numbered_classes(records.labels);
  return records;
}

Result<std::unique_ptr<Dataset>> open_idx(const std::filesystem::path& folder, Part part,
                                          const std::vector<std::string>& classes) {
  Records all;
  for (const auto& [wanted, prefix] : {std::pair(Part::train, "train"), {Part::test, "t10k"}}) {
    if (part != wanted && part != Part::all) continue;
    FLEETFIT_ASSIGN(const auto some, read_pair(folder, prefix));
    if (auto ok = all.append(some); !ok) return core::within(folder.string(), ok.error());
  }
  if (!classes.empty()) all.classes = classes;
  return dataset_of(std::move(all), folder.string());
}

}  // namespace fleetfit::data
