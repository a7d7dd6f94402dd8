#pragma once

#include <cstdint>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

/// Networks for other things than classes of images, with random weights from a seed. Where they
/// have a Dropout, it stands for what training leaves out and does nothing else.
namespace fleetfit::graph {

/// M5 of "Very deep convolutional neural networks for raw waveforms" (Dai and others): N x 1 x 1 x
/// length samples to N x classes. Convolutions over time are written as ones of height 1.
struct M5Options {
  std::int64_t length = 8000;  ///< samples
  std::int64_t channels = 32;  ///< of the first two layers; the last two have twice as many
  std::int64_t stride = 16;    ///< of the first layer
  std::int64_t classes = 10;
  std::uint64_t seed = 1;
};

/// `invalid_input` if the recording is too short for its four poolings.
Result<Graph> build_m5(const M5Options& options);

/// Words (N x length, int64, numbers of a vocabulary) to N x classes: embeddings, the mean of each
/// `stride` of them, a simple recurrence over these means, unrolled, and the mean of its states.
struct TextRnnOptions {
  std::int64_t length = 64;
  std::int64_t vocabulary = 10'000;
  std::int64_t embedding = 64;
  std::int64_t hidden = 64;
  std::int64_t stride = 4;  ///< words that a step takes in; what is left over at the end is dropped
  std::int64_t classes = 4;
  std::uint64_t seed = 1;
};

/// `invalid_input` if the stride is longer than the text.
Result<Graph> build_text_rnn(const TextRnnOptions& options);

/// A small YOLO with one box for each cell of 8 x 8 pixels: N x channels x size x size to N x (5 +
/// classes) x size/8 x size/8. A cell has whether something has its centre there, x and y of the
/// centre within the cell, width and height (logarithms of shares of `kYoloBoxPixels`), and
/// classes; the first three before a sigmoid, classes before a softmax.
struct SmallYoloOptions {
  std::int64_t size = 64;
  std::int64_t channels = 1;
  double width = 1;  ///< multiplies the number of channels
  std::int64_t classes = 10;
  std::uint64_t seed = 1;
};

inline constexpr std::int64_t kYoloCell = 8;
inline constexpr double kYoloBoxPixels = 24;

/// `invalid_input` if the size is no multiple of 8.
Result<Graph> build_small_yolo(const SmallYoloOptions& options);

}  // namespace fleetfit::graph
