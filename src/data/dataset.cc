#include "fleetfit/data/dataset.h"

#include <fmt/format.h>

#include <functional>

#include "data/sources.h"
#include "fleetfit/core/names.h"
#include "fleetfit/data/scenes.h"

namespace fleetfit::data {
namespace {

constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

/// A data set by its spec, and whether it says which of its images are for testing.
struct Source {
  bool has_test = true;
  std::function<Result<std::unique_ptr<Dataset>>(Part)> open;
};

std::vector<std::string> fashion_classes() {
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
          "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
}

Result<Source> find_source(std::string_view spec) {
  const auto colon = spec.find(':');
  const auto kind = spec.substr(0, colon);
  const std::filesystem::path folder =
      colon == std::string_view::npos ? std::string_view{} : spec.substr(colon + 1);
  if (kind == "fashion-mnist") {
    const auto place = folder.empty() ? std::filesystem::path(kFashionMnist) : folder;
    return Source{.open = [=](Part part) { return open_idx(place, part, fashion_classes()); }};
  }
  const bool known = kind == "idx" || kind == "cifar10" || kind == "images";
  if (!known || folder.empty())
    return fail(ErrorCode::invalid_input,
                fmt::format("'{}' is no data set; they are fashion-mnist, idx:DIR, cifar10:DIR and "
                            "images:DIR, or scenes: or shifted:ALPHA: before one of them",
                            spec));
  if (kind == "idx") return Source{.open = [=](Part part) { return open_idx(folder, part, {}); }};
  if (kind == "cifar10")
    return Source{.open = [=](Part part) { return open_cifar10(folder, part); }};
  return Source{.has_test = has_parts(folder),
                .open = [=](Part part) { return open_image_folder(folder, part); }};
}

Part wanted_part(const Source& source, Split split) {
  if (!source.has_test || split == Split::all) return Part::all;
  return split == Split::test ? Part::test : Part::train;
}

Status check(const SplitOptions& options) {
  const auto is_share = [](double share) { return share >= 0 && share < 1; };
  if (is_share(options.validation_share) && is_share(options.test_share)) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("shares of {} for validation and {} for testing are not between 0 and 1",
                          options.validation_share, options.test_share));
}

Result<std::unique_ptr<Dataset>> open_shifted(std::string_view spec, Split split,
                                              const SplitOptions& options) {
  FLEETFIT_ASSIGN(const auto shift, parse_shift(spec));
  if (is_shifted_spec(shift.spec))
    return fail(ErrorCode::invalid_input, fmt::format("{}: it is shifted twice", spec));
  auto data = open_dataset(shift.spec, split, options);
  if (!data) return data;
  return shift_classes(*std::move(data), shift);
}

}  // namespace

bool are_same_classes(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto is_named = [](const std::vector<std::string>& classes) {
    for (std::size_t i = 0; i < classes.size(); ++i)
      if (classes[i] != std::to_string(i)) return true;
    return false;
  };
  return a.size() == b.size() && (a == b || !is_named(a) || !is_named(b));
}

std::string_view to_string(Split split) {
  static constexpr core::Name kAll[] = {{Split::train, "train"},
                                        {Split::validation, "validation"},
                                        {Split::test, "test"},
                                        {Split::all, "all"}};
  return core::Names{.all = kAll}.of(static_cast<std::int64_t>(split));
}

Result<std::unique_ptr<Dataset>> open_dataset(std::string_view spec, Split split,
                                              const SplitOptions& options) {
  FLEETFIT_TRY(check(options));
  if (is_scenes_spec(spec)) return open_scenes(spec, split, {}, options).map(as_dataset);
  if (is_shifted_spec(spec)) return open_shifted(spec, split, options);
  FLEETFIT_ASSIGN(const auto source, find_source(spec));
  auto data = source.open(wanted_part(source, split));
  if (!data) return core::within(spec, data.error());
  const bool whole = split == Split::all || (split == Split::test && source.has_test);
  if (!whole) {
    auto shares = options;
    if (source.has_test) shares.test_share = 0;
    const auto count = (*data)->size();
    data = subset(*std::move(data), chosen_items(count, split, shares));
  }
  if ((*data)->size() == 0)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: there are no images for '{}'", spec, to_string(split)));
  return data;
}

}  // namespace fleetfit::data
