#pragma once

#include <functional>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/predict/regressor.h"

namespace fleetfit::predict::test {

/// A training set that owns its numbers.
struct OwnedSet {
  std::size_t columns = 0;
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<int> fold = {};

  MatrixView rows() const { return {.values = x, .columns = columns}; }
  TrainingSet view() const { return {.x = rows(), .y = y, .fold = fold, .folds = 5}; }
};

/// Features uniform in [1, 100), times by a law, five folds.
inline OwnedSet make_set(std::size_t rows, std::size_t columns, std::uint64_t seed,
                         const std::function<double(std::span<const double>)>& law) {
  OwnedSet set{.columns = columns};
  core::Random random(seed);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) set.x.push_back(random.uniform(1, 100));
    set.y.push_back(law(std::span(set.x).last(columns)));
    set.fold.push_back(static_cast<int>(i % 5));
  }
  return set;
}

}  // namespace fleetfit::predict::test
