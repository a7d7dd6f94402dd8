#include "app/elastic/subnet_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/models/model_files.h"
#include "fleetfit/core/random.h"

namespace fleetfit::app {
namespace {

using elastic::Bundle;

std::string size_text(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return fmt::format("{}x{} with {} channel{}", height, width, channels, channels == 1 ? "" : "s");
}

/// Images of one size are what the model was made for, or they are not; folders of images have all
/// sizes.
Status check_fit(const ImagesRequest& request, const SubnetImages& images, const Bundle& bundle) {
  const auto& classes = images.dataset->classes();
  if (!bundle.info.classes.empty() && !data::are_same_classes(bundle.info.classes, classes))
    return refuse(fmt::format(
        "{}: its {} classes are not the {} that the model of {} was trained for ({}, …)",
        request.data, classes.size(), bundle.info.classes.size(), request.bundle.string(),
        bundle.info.classes.front()));
  if (request.data.find("images:") != std::string::npos) return {};
  FLEETFIT_ASSIGN(const auto item, images.dataset->item(0));
  const auto& [height, width, channels, pixels] = item.image;
  const auto& asked = images.preprocessing;
  if (height == asked.height && width == asked.width && channels == asked.channels) return {};
  return refuse(fmt::format("{}: its images are {}, the model of {} takes {}", request.data,
                            size_text(height, width, channels), request.bundle.string(),
                            size_text(asked.height, asked.width, asked.channels)));
}

}  // namespace

std::unique_ptr<adapt::ImageBatches> SubnetImages::part(std::size_t first,
                                                        std::size_t count) const {
  first = std::min(first, order.size());
  count = std::min(count, order.size() - first);
  const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
  return adapt::make_image_batches({.dataset = dataset,
                                    .indices = {begin, begin + static_cast<std::ptrdiff_t>(count)},
                                    .preprocessing = preprocessing,
                                    .batch_size = kImageBatch});
}

Result<SubnetImages> open_images(const ImagesRequest& request, const Bundle& bundle,
                                 data::Split split) {
  const auto& first = bundle.models.front().blocks.front().branches.front().graph;
  FLEETFIT_ASSIGN(auto preprocessing,
                  core::within(request.bundle.string(), image_preprocessing(first)));
  FLEETFIT_ASSIGN(auto dataset, data::open_dataset(request.data, split));
  const std::size_t size = dataset->size();
  const auto order = core::Random(request.seed).split(data::to_string(split)).sample(size, size);
  SubnetImages images{.dataset = std::move(dataset),
                      .order = {order.begin(), order.end()},
                      .preprocessing = std::move(preprocessing)};
  FLEETFIT_TRY(check_fit(request, images, bundle));
  if (size < kLeastImages)
    return refuse(fmt::format("{}: it has {} images for {}, at least {} are needed", request.data,
                              size, data::to_string(split), kLeastImages));
  return images;
}

}  // namespace fleetfit::app
