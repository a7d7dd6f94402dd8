#include <algorithm>
#include <span>
#include <utility>

#include "fleetfit/adapt/evaluator.h"

namespace fleetfit::adapt {
namespace {

class DatasetBatches final : public ImageBatches {
 public:
  explicit DatasetBatches(ImageChoice choice) : choice_(std::move(choice)) {}

  std::size_t images() const override { return choice_.indices.size(); }
  std::size_t batch_size() const override { return choice_.batch_size; }

  Result<data::Batch> batch(std::size_t index) const override {
    const std::size_t first = index * choice_.batch_size;
    const std::size_t count = std::min(choice_.batch_size, images() - first);
    return data::make_batch(*choice_.dataset, std::span(choice_.indices).subspan(first, count),
                            choice_.preprocessing);
  }

 private:
  ImageChoice choice_;
};

}  // namespace

std::unique_ptr<ImageBatches> make_image_batches(ImageChoice choice) {
  return std::make_unique<DatasetBatches>(std::move(choice));
}

}  // namespace fleetfit::adapt
