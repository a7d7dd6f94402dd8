#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/elastic/supernet.h"
#include "train/quality.h"
#include "train/subnet_sampler.h"
#include "train/torch/images.h"

namespace fleetfit::train {

/// What running statistics of batch norm do while subnets learn.
enum class Statistics : std::uint8_t {
  stay,    ///< they are renewed afterwards
  follow,  ///< with every batch; for one subnet at a time
};

struct TuneStep {
  std::span<const SubnetPath> subnets = {};  ///< whose gradients are added up
  double rate = 0;
  double soft_share = 0;  ///< of the loss: the original's classes instead of the labels
  /// Of the mean error of features between the blocks, relative to the original's, in the loss.
  double feature_weight = 0;
  Statistics statistics = Statistics::stay;
};

/// The branches of a supernet as they learn. The originals are their teacher and never change.
/// Results depend on what is asked for, never on the number of the pool's threads. What libtorch
/// refuses is `internal`.
class TorchSupernet {
 public:
  /// `unsupported` names the node that cannot be trained. Borrows the pool.
  static Result<std::unique_ptr<TorchSupernet>> create(const elastic::Supernet& supernet,
                                                       const at::Device& device,
                                                       core::ThreadPool& pool);
  virtual ~TorchSupernet() = default;

  /// Every branch takes a step by itself: it is given what its first block is given in the
  /// original, and asked for what its last block gives there. The mean of their squared errors,
  /// each relative to the power of what was asked for.
  virtual Result<double> distill(const TorchBatch& batch, double rate) = 0;

  /// The branches of one subnet take a step together, each asked for what the original gives at its
  /// place: the mean of their squared errors.
  virtual Result<double> distill_subnet(const TorchBatch& batch, const SubnetPath& subnet,
                                        double rate) = 0;

  /// The branches of subnets take a step towards the right classes and the original's features.
  /// The mean of the subnets' losses.
  virtual Result<double> tune(const TorchBatch& batch, const TuneStep& step) = 0;

  /// Statistics of the branches' batch norm become the mean over the batches of all calls of
  /// `add_statistics` since `renew_statistics`. Those of branches on no such subnet stay.
  virtual void renew_statistics() = 0;
  virtual Status add_statistics(const TorchBatch& batch, const SubnetPath& subnet) = 0;

  /// What each subnet finds.
  virtual Result<std::vector<ClassCounts>> count_classes(const TorchBatch& batch,
                                                         std::span<const SubnetPath> subnets) = 0;

  /// Whether the original can work on images of this form, which need not be its own.
  virtual bool takes(const ImageForm& form) const = 0;

  /// All that was learned, and what the next step needs; `restore` gives `invalid_input` if that is
  /// not of this supernet.
  virtual std::vector<std::vector<float>> state() const = 0;
  virtual Status restore(const std::vector<std::vector<float>>& state) = 0;

  /// The supernet with the branches as they are now.
  virtual elastic::Supernet supernet() const = 0;
};

}  // namespace fleetfit::train
