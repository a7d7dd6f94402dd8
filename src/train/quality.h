#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// How good it is what networks find: classes of images and pixels, boxes around things.
namespace fleetfit::train {

/// How often each class was found, was right, and both: of images or of pixels.
struct ClassCounts {
  std::vector<std::int64_t> found = {};
  std::vector<std::int64_t> wanted = {};
  std::vector<std::int64_t> both = {};

  void add(const ClassCounts& other);

  /// Share of labels that were found.
  double accuracy() const;

  /// Intersection over union, its mean over the classes that occur.
  double mean_iou() const;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

struct Detection {
  Box box = {};
  std::int64_t label = 0;
  double confidence = 0;
};

struct TrueBox {
  Box box = {};
  std::int64_t label = 0;
};

/// Area that both have over area that either has; 0 for boxes without area.
double overlap(const Box& a, const Box& b);

/// The surest of detections that overlap by more than `limit` and have one label, surest first.
std::vector<Detection> suppress_doubles(std::vector<Detection> found, double limit);

/// What is an image's, and what was found there.
struct Judged {
  std::vector<Detection> found = {};
  std::vector<TrueBox> there = {};
};

/// The mean over all classes that occur of the area under precision over recall (all points, as in
/// PASCAL VOC from 2010 on). A detection is right if it overlaps a thing of its class by at least
/// `least`, and nothing surer has it already. 0 if there is nothing.
double mean_average_precision(std::span<const Judged> images, std::int64_t classes, double least);

}  // namespace fleetfit::train
