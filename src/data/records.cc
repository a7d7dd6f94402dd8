#include "data/records.h"

#include <fmt/format.h>

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

}  // namespace fleetfit::data
