#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/data/dataset.h"

namespace fleetfit::train {

/// The extents of a network's input without the batch.
struct ImageForm {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  bool operator==(const ImageForm&) const = default;
};

/// The form of the data's first image.
Result<ImageForm> form_of(const data::Dataset& data);

struct TorchImageOptions {
  ImageForm form = {};     ///< what the network takes; zeros: as the images are
  std::int64_t limit = 0;  ///< most images, chosen at random, always the same ones; 0: all
  at::Device device = at::kCPU;
  std::int64_t max_bytes = 0;  ///< kept in memory; 0: half of the machine's
};

/// Inputs for a network (count x channels x height x width, pixel / 255) and their labels (count,
/// or count x height x width where each pixel has one), on the device.
struct TorchBatch {
  at::Tensor images;
  at::Tensor labels;
};

/// What is done to images so that a network sees others each time. Pixels from outside are 0.
struct Augmentation {
  std::int64_t shift = 0;  ///< by up to so many pixels in each direction
  bool flip = false;       ///< left to right, every second one
};

/// The images of a split. Decoded once and kept as bytes on the device if they fit, else read
/// whenever they are asked for. Immutable; to be asked from one thread at a time. The data and the
/// pool must outlive it.
class TorchImages {
 public:
  /// Fails as reading the data does; `cancelled` if asked to stop.
  static Result<TorchImages> load(const data::Dataset& data, const TorchImageOptions& options,
                                  core::ThreadPool& pool, const std::stop_token& stop = {});

  TorchImages(TorchImages&&) noexcept;
  TorchImages& operator=(TorchImages&&) noexcept;
  ~TorchImages();

  std::int64_t size() const;
  const ImageForm& form() const;
  bool is_in_memory() const;

  /// The images at these places (below size()), as they are or changed at random;
  /// classes of pixels move with them.
  Result<TorchBatch> batch(std::span<const std::int64_t> places) const;
  Result<TorchBatch> batch(std::span<const std::int64_t> places, const Augmentation& augmentation,
                           core::Random random) const;

 private:
  struct Parts;
  explicit TorchImages(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

struct EpochOptions {
  std::int64_t batch = 128;  ///< of fewer images, all are one batch
  Augmentation augmentation = {};
};

/// One pass over images in random order, in batches of one size; what is left over waits for
/// another pass. Batch number i depends on the generator's seed and on i alone, so that a pass can
/// be taken up in its middle. The images must outlive it.
class ShuffledBatches {
 public:
  ShuffledBatches(const TorchImages& images, const EpochOptions& options,
                  const core::Random& random);

  std::int64_t size() const;
  Result<TorchBatch> batch(std::int64_t number) const;

  /// The same for callers that take one after the other: where images have to be read, the next
  /// batch is read meanwhile.
  Result<TorchBatch> next(std::int64_t number);

 private:
  const TorchImages& images_;
  EpochOptions options_;
  core::Random random_;
  std::vector<std::int64_t> order_;
  std::int64_t ahead_ = -1;  // number of the batch that is being read
  std::future<Result<TorchBatch>> reading_;
};

/// The images in their own order, the last batch as small as it comes.
class OrderedBatches {
 public:
  OrderedBatches(const TorchImages& images, std::int64_t batch) : images_(images), batch_(batch) {}

  std::int64_t size() const { return (images_.size() + batch_ - 1) / batch_; }
  Result<TorchBatch> batch(std::int64_t number) const;

 private:
  const TorchImages& images_;
  std::int64_t batch_;
};

}  // namespace fleetfit::train
