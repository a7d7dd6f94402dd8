#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

#include "fleetfit/app/sources.h"
#include "fleetfit/space/table.h"

namespace fleetfit::app {

struct FitOptions {
  FitMethod method = FitMethod::automatic;
  std::uint64_t seed = 1;
  int threads = 1;
  std::stop_token stop = {};
};

struct FittedSource {
  std::unique_ptr<const space::Source> source;
  std::string settings;         ///< for people
  std::size_t designs = 0;      ///< that it was fitted to
  double rank_correlation = 0;  ///< with designs that were held out
};

/// Learns the table's first column from the space's one-hot encoding. Fails with `invalid_input` if
/// there are too few designs, if a number is not positive, or if all numbers are equal; with
/// `not_found` if dense layers are asked for where fleetfit-train is not installed.
Result<FittedSource> fit_source(const space::Space& space, const space::DesignTable& table,
                                const FitOptions& options);

}  // namespace fleetfit::app
