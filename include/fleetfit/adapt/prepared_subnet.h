#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::elastic {
struct Supernet;
class SubnetSpace;
}  // namespace fleetfit::elastic

namespace fleetfit::engine {
struct EngineOptions;
}

namespace fleetfit::adapt {

/// A subnet that is ready to run: one input and one output of floats. Belongs to one thread at a
/// time.
class PreparedSubnet {
 public:
  virtual ~PreparedSubnet() = default;

  /// Runs once; `input` has as many values as `input_shape` says.
  virtual Status run(std::span<const float> input) = 0;

  /// Of the last run.
  virtual std::span<const float> output() const = 0;

  virtual const std::vector<std::int64_t>& input_shape() const = 0;
  virtual const std::vector<std::int64_t>& output_shape() const = 0;

  /// Memory that it takes while it is ready.
  virtual std::size_t bytes() const = 0;
};

/// Makes subnets ready to run, by their text. Called by one thread at a time.
class SubnetPreparer {
 public:
  virtual ~SubnetPreparer() = default;
  virtual Result<std::unique_ptr<PreparedSubnet>> prepare(const std::string& subnet) = 0;
};

/// For the engine in this process: runs each subnet once, so that its memory is there. What the
/// engine finds out about the fastest kernels while it prepares one serves the next. Borrows both.
/// Preparing fails with `invalid_input` on a text that is no subnet, and with `unsupported` if the
/// subnet has not one input and one output of floats.
std::unique_ptr<SubnetPreparer> make_engine_preparer(const std::vector<elastic::Supernet>& models,
                                                     const elastic::SubnetSpace& space,
                                                     engine::EngineOptions options);

}  // namespace fleetfit::adapt
