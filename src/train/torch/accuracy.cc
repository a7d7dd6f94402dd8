#include "train/torch/accuracy.h"

#include <ATen/core/grad_mode.h>

namespace fleetfit::train {

Result<double> accuracy_of(TorchNetwork& network, const TorchImages& images,
                           const std::stop_token& stop) {
  constexpr std::int64_t kBatch = 250;
  const at::NoGradGuard at_work;
  network.batch_statistics(false);
  const OrderedBatches batches(images, kBatch);
  std::int64_t right = 0;
  std::int64_t labels = 0;
  for (std::int64_t i = 0; i < batches.size(); ++i) {
    if (stop.stop_requested()) return fail(ErrorCode::cancelled, "interrupted");
    FLEETFIT_ASSIGN(const auto batch, batches.batch(i));
    const auto found = network.forward_one(batch.images).argmax(1);
    right += found.eq(batch.labels).sum().item<std::int64_t>();
    labels += batch.labels.numel();
  }
  return static_cast<double>(right) / static_cast<double>(labels);
}

}  // namespace fleetfit::train
