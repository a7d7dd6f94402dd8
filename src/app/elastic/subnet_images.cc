#include "app/elastic/subnet_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/models/model_files.h"
#include "fleetfit/core/json.h"
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

SubnetAccuracies::SubnetAccuracies(AccuracyParts parts, std::unique_ptr<adapt::ImageBatches> images,
                                   std::filesystem::path file)
    : parts_(std::move(parts)), images_(std::move(images)), file_(std::move(file)) {
  const auto document = core::read_json(file_);
  if (!document) return;
  const auto members = core::JsonView(*document, file_.string()).members();
  if (!members) return;
  for (const auto& [subnet, value] : *members) {
    const auto numbers = value.as_numbers();
    if (numbers && numbers->size() == 2) known_[subnet] = {(*numbers)[0], (*numbers)[1]};
  }
}

Result<std::vector<adapt::Evaluation>> SubnetAccuracies::evaluate(space::DesignBatch designs) {
  space::Population missing(designs.genes());
  for (std::size_t i = 0; i < designs.size(); ++i)
    if (!known_.contains(parts_.space.format(designs[i]))) missing.add(designs[i]);
  FLEETFIT_TRY(evaluate_missing(missing));
  std::vector<adapt::Evaluation> all;
  for (std::size_t i = 0; i < designs.size(); ++i)
    all.push_back(known_.at(parts_.space.format(designs[i])));
  return all;
}

Status SubnetAccuracies::evaluate_missing(space::DesignBatch designs) {
  if (designs.empty()) return {};
  if (!evaluator_) {
    FLEETFIT_ASSIGN(evaluator_,
                    adapt::Evaluator::create({parts_.models, parts_.space, parts_.table, *images_},
                                             {.threads = parts_.threads}));
    evaluator_->watch(&parts_.progress, parts_.stop);
  }
  FLEETFIT_ASSIGN(const auto found, evaluator_->evaluate(designs));
  for (std::size_t i = 0; i < designs.size(); ++i)
    known_[parts_.space.format(designs[i])] = found[i];
  return save();
}

Status SubnetAccuracies::save() const {
  auto json = nlohmann::json::object();
  for (const auto& [subnet, evaluation] : known_)
    json[subnet] = {evaluation.accuracy, evaluation.confidence};
  return core::write_json(file_, json);
}

}  // namespace fleetfit::app
