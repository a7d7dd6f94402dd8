#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Boxes around things: how far they agree.
namespace fleetfit::train {

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
