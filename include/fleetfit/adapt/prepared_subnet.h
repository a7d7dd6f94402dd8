#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

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

}  // namespace fleetfit::adapt
