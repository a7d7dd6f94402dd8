#include "data/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetfit/core/random.h"

namespace fleetfit::data {
namespace {

class RecordDataset : public Dataset {
 public:
  explicit RecordDataset(Records records) : records_(std::move(records)) {}

  std::size_t size() const override { return records_.labels.size(); }
  const std::vector<std::string>& classes() const override { return records_.classes; }

  Result<Item> item(std::size_t index) const override {
    const auto bytes = records_.image_bytes();
    const auto* first = records_.pixels.data() + index * bytes;
    return Item{.image = {.height = records_.height,
                          .width = records_.width,
                          .channels = records_.channels,
                          .pixels = {first, first + bytes}},
                .label = records_.labels[index]};
  }

 private:
  Records records_;
};

class Subset : public Dataset {
 public:
  Subset(std::unique_ptr<Dataset> data, std::vector<std::size_t> indices)
      : data_(std::move(data)), indices_(std::move(indices)) {}

  std::size_t size() const override { return indices_.size(); }
  const std::vector<std::string>& classes() const override { return data_->classes(); }
  Result<Item> item(std::size_t index) const override { return data_->item(indices_[index]); }

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<std::size_t> indices_;
};

std::size_t share_of(std::size_t count, double share) {
  return static_cast<std::size_t>(std::round(share * static_cast<double>(count)));
}

}  // namespace

Status Records::append(const Records& more) {
  if (labels.empty()) {
    *this = more;
    return {};
  }
  if (height != more.height || width != more.width || channels != more.channels)
    return fail(ErrorCode::invalid_input,
                fmt::format("images of {} x {} x {} beside others of {} x {} x {}", more.height,
                            more.width, more.channels, height, width, channels));
  pixels.insert(pixels.end(), more.pixels.begin(), more.pixels.end());
  labels.insert(labels.end(), more.labels.begin(), more.labels.end());
  if (more.classes.size() > classes.size()) classes = more.classes;
  return {};
}

Result<std::unique_ptr<Dataset>> dataset_of(Records records, const std::string& name) {
  for (std::size_t i = 0; i < records.labels.size(); ++i) {
    const auto label = records.labels[i];
    if (label < 0 || label >= std::ssize(records.classes))
      return fail(ErrorCode::invalid_input, fmt::format("{}: image {} has label {} of {} classes",
                                                        name, i, label, records.classes.size()));
  }
  return std::make_unique<RecordDataset>(std::move(records));
}

std::unique_ptr<Dataset> subset(std::unique_ptr<Dataset> data, std::vector<std::size_t> indices) {
  return std::make_unique<Subset>(std::move(data), std::move(indices));
}

std::vector<std::size_t> chosen_items(std::size_t count, Split split, const SplitOptions& options) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (split == Split::all) return order;
  core::Random(options.seed).shuffle(order);
  const auto test = share_of(count, options.test_share);
  const auto validation = share_of(count - test, options.validation_share);
  const std::span all(order);
  auto part = all.subspan(test + validation);
  if (split == Split::test) part = all.first(test);
  if (split == Split::validation) part = all.subspan(test, validation);
  std::vector<std::size_t> chosen(part.begin(), part.end());
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace fleetfit::data
