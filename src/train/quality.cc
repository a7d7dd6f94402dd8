#include "train/quality.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

namespace fleetfit::train {
namespace {

void add_to(std::vector<std::int64_t>& sums, const std::vector<std::int64_t>& more) {
  sums.resize(std::max(sums.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

double sum_of(const std::vector<std::int64_t>& counts) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
}

double area(const Box& box) {
  return std::max(0.0, box.right - box.left) * std::max(0.0, box.bottom - box.top);
}

/// A detection of one class in one image.
struct Candidate {
  std::size_t image = 0;
  Box box = {};
  double confidence = 0;
};

std::vector<Candidate> candidates_of(std::span<const Judged> images, std::int64_t label) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < images.size(); ++i)
    for (const auto& found : images[i].found)
      if (found.label == label)
        candidates.push_back({.image = i, .box = found.box, .confidence = found.confidence});
  std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::confidence);
  return candidates;
}

/// Takes the thing that a candidate overlaps most, if that is enough and it is still there.
bool take_match(const Candidate& candidate, std::vector<std::vector<Box>>& there, double least) {
  auto& boxes = there[candidate.image];
  const auto best = std::ranges::max_element(
      boxes, {}, [&](const Box& box) { return overlap(box, candidate.box); });
  if (best == boxes.end() || overlap(*best, candidate.box) < least) return false;
  boxes.erase(best);
  return true;
}

/// The area under the highest precision that is reached at each recall or beyond.
double area_under(std::vector<double> precisions, const std::vector<double>& recalls) {
  double sum = 0;
  for (std::size_t i = precisions.size(); i-- > 1;)
    precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
  double before = 0;
  for (std::size_t i = 0; i < precisions.size(); ++i) {
    sum += (recalls[i] - before) * precisions[i];
    before = recalls[i];
  }
  return sum;
}

double average_precision(std::span<const Judged> images, std::int64_t label, double least,
                         std::size_t count) {
  std::vector<std::vector<Box>> there(images.size());
  for (std::size_t i = 0; i < images.size(); ++i)
    for (const auto& thing : images[i].there)
      if (thing.label == label) there[i].push_back(thing.box);
  std::vector<double> precisions;
  std::vector<double> recalls;
  double right = 0;
  for (const auto& candidate : candidates_of(images, label)) {
    if (take_match(candidate, there, least)) ++right;
    precisions.push_back(right / static_cast<double>(precisions.size() + 1));
    recalls.push_back(right / static_cast<double>(count));
  }
  return area_under(std::move(precisions), recalls);
}

std::size_t count_of(std::span<const Judged> images, std::int64_t label) {
  std::size_t count = 0;
  for (const auto& image : images)
    for (const auto& thing : image.there)
      if (thing.label == label) ++count;
  return count;
}

}  // namespace

void ClassCounts::add(const ClassCounts& other) {
  add_to(found, other.found);
  add_to(wanted, other.wanted);
  add_to(both, other.both);
}

double ClassCounts::accuracy() const {
  const double labels = sum_of(wanted);
  return labels > 0 ? sum_of(both) / labels : 0;
}

double ClassCounts::mean_iou() const {
  double sum = 0;
  double classes = 0;
  for (std::size_t i = 0; i < both.size(); ++i) {
    const auto either = found[i] + wanted[i] - both[i];
    if (either == 0) continue;
    sum += static_cast<double>(both[i]) / static_cast<double>(either);
    ++classes;
  }
  return classes > 0 ? sum / classes : 0;
}

double overlap(const Box& a, const Box& b) {
  const Box common{.left = std::max(a.left, b.left),
                   .top = std::max(a.top, b.top),
                   .right = std::min(a.right, b.right),
                   .bottom = std::min(a.bottom, b.bottom)};
  const double both = area(common);
  const double either = area(a) + area(b) - both;
  return either > 0 ? both / either : 0;
}

std::vector<Detection> suppress_doubles(std::vector<Detection> found, double limit) {
  std::ranges::stable_sort(found, std::greater<>(), &Detection::confidence);
  std::vector<Detection> kept;
  for (const auto& each : found) {
    const bool is_double = std::ranges::any_of(kept, [&](const Detection& other) {
      return other.label == each.label && overlap(other.box, each.box) > limit;
    });
    if (!is_double) kept.push_back(each);
  }
  return kept;
}

double mean_average_precision(std::span<const Judged> images, std::int64_t classes, double least) {
  double sum = 0;
  std::int64_t occurring = 0;
  for (std::int64_t label = 0; label < classes; ++label) {
    const auto count = count_of(images, label);
    if (count == 0) continue;
    ++occurring;
    sum += average_precision(images, label, least, count);
  }
  return occurring > 0 ? sum / static_cast<double>(occurring) : 0;
}

}  // namespace fleetfit::train
