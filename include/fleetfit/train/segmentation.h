#pragma once

#include <cstdint>

#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/tensor.h"

/// Networks that give a class for each pixel.
namespace fleetfit::train {

/// Whether a tensor has something for each of several pixels: N x channels x height x width.
bool is_map(const graph::Tensor& output);

/// Checks that a network gives classes of what the data has labels for: of images, or of pixels as
/// many as the input has. `invalid_input` says which of them it is.
Status check_label_form(const graph::Tensor& input, const graph::Tensor& output,
                        const data::Dataset& data);

struct SegmentationOptions {
  std::int64_t classes = 0;
  std::int64_t height = 0;  ///< of the images
  std::int64_t width = 0;
  std::uint64_t seed = 1;  ///< of the head's first weights
};

/// Whether a network gives a class for each pixel: its output is N x classes x height x width.
bool is_segmentation(const graph::Graph& network);

/// A classifier made into a network that gives the class of each pixel. What it has up to its last
/// feature map stays, with its weights, for images of another size. A new head follows: a 3x3
/// convolution with batch norm, a 1x1 convolution to the classes, and a bilinear stretch to the
/// size of the images. Fails with `invalid_input` if it has no such map, or if that does not divide
/// the images evenly.
Result<graph::Graph> with_segmentation_head(const graph::Graph& classifier,
                                            const SegmentationOptions& options);

}  // namespace fleetfit::train
