#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/space/design.h"

/// How accurate subnets are on the device's data. Subnets that begin alike share the work of what
/// they begin with.
namespace fleetfit::core {
struct Fields;
}

namespace fleetfit::adapt {

/// How good a subnet is on some images.
struct Evaluation {
  double accuracy = 0;    ///< share of images, or of pixels, whose class was found
  double confidence = 0;  ///< how clear it was, beside the others, from 0 to 1

  /// What searches go by: on few images, many subnets find as many classes, and how sure they are
  /// shows the better ones.
  double score() const { return (accuracy + confidence) / 2; }

  bool operator==(const Evaluation&) const = default;
};

/// Where searches get the quality of subnets from.
class SubnetQuality {
 public:
  virtual ~SubnetQuality() = default;
  /// In the order of the designs.
  virtual Result<std::vector<Evaluation>> evaluate(space::DesignBatch designs) = 0;
  /// Different subnets so far.
  virtual std::size_t evaluated() const = 0;
};

/// Labelled images in batches of one size; the last one may have fewer. Safe to use from many
/// threads.
class ImageBatches {
 public:
  virtual ~ImageBatches() = default;
  virtual std::size_t images() const = 0;
  virtual std::size_t batch_size() const = 0;
  /// `index` is below batches().
  virtual Result<data::Batch> batch(std::size_t index) const = 0;

  std::size_t batches() const { return (images() + batch_size() - 1) / batch_size(); }
};

/// Images of a data set, read when they are asked for.
struct ImageChoice {
  std::shared_ptr<const data::Dataset> dataset = {};  ///< shared by those who look at other images
  std::vector<std::size_t> indices = {};
  data::Preprocessing preprocessing = {};
  std::size_t batch_size = 1;
};
std::unique_ptr<ImageBatches> make_image_batches(ImageChoice choice);

/// What counts as right.
enum class Labels : std::uint8_t {
  data,      ///< the data's own
  original,  ///< what the original network says, where nobody has labelled the data
};

struct EvaluatorOptions {
  Labels labels = Labels::data;
  std::size_t reuse_bytes = std::size_t{256} << 20;    ///< most for features that are kept; 0: none
  std::size_t program_bytes = std::size_t{512} << 20;  ///< about the most for branches made ready
  int threads = 1;
};

/// What sharing has saved so far.
struct ReuseReport {
  double saved_fraction = 0;   ///< of the time that it would have taken without
  std::size_t peak_bytes = 0;  ///< of features that were kept
  std::size_t runs = 0;        ///< of branches, on a batch each
  std::size_t runs_without = 0;
  double spent_s = 0;    ///< running branches, on all threads together
  double without_s = 0;  ///< each branch's mean time x how often it would have been run
};
core::Fields fields_of(const ReuseReport*);

/// What an evaluator works on. Borrows everything.
struct EvaluatorParts {
  const std::vector<elastic::Supernet>& models;  ///< read with the batch size of the images
  const elastic::SubnetSpace& space;
  const LatencyTable& table;  ///< says which features are worth keeping
  const ImageBatches& images;
};

/// Takes the images batch by batch, and with each batch all subnets that were asked for, in the
/// order of the tree of their prefixes. A branch is run once for all subnets that have the same
/// beginning, as long as its output may be kept: on the way through the tree, and from one call to
/// the next for the prefixes that are used most. Which are kept is decided by their latency and by
/// how many share them. Results are remembered: a subnet is evaluated once. They depend neither on
/// the memory nor on the threads. Belongs to one thread.
class Evaluator : public SubnetQuality {
 public:
  /// Fails with `invalid_input` if images and models do not fit: another shape, other classes, no
  /// image at all.
  static Result<std::unique_ptr<Evaluator>> create(const EvaluatorParts& parts,
                                                   const EvaluatorOptions& options = {});

  /// Fails as the engine and the data do, and with `cancelled`.
  Result<std::vector<Evaluation>> evaluate(space::DesignBatch designs) override = 0;
  virtual ReuseReport reuse() const = 0;

  /// Shown while it works, and what ends it early. Both may be left out.
  virtual void watch(core::Progress* progress, std::stop_token stop) = 0;
};

}  // namespace fleetfit::adapt
