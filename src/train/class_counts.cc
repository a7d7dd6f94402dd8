#include "train/class_counts.h"

#include <algorithm>
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

}  // namespace fleetfit::train
