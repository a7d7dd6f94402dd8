#pragma once

#include "app/models/model_files.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/measure/hardware.h"
#include "fleetfit/tune/inference.h"

namespace fleetfit::app {

/// The device as a setting wants it: with the first so many of its cores, as many threads (as
/// cores, if the setting says nothing else), in this precision. Fails with `invalid_input` if the
/// device or the machine has not as many cores.
Result<measure::Device> variant_of(measure::Device device, const measure::Hardware& hardware,
                                   const tune::InferenceSetting& setting);

/// A network that is run with several batches.
struct BatchedModel {
  graph::Graph graph;     ///< for one sample, where that is possible
  std::string name;       ///< for people
  std::string structure;  ///< its identity

  /// Fails as `graph::import_model` does.
  static Result<BatchedModel> open(const std::filesystem::path& file, ModelOptions options);

  /// Files of the network with that batch. Fails as `graph::with_batch` does.
  Result<ModelFiles> files(std::int64_t batch, int threads) const;
};

}  // namespace fleetfit::app
