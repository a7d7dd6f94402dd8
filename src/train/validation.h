#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/predict/network_parts.h"
#include "train/torch/fits.h"

namespace fleetfit::train {

/// Mean of |predicted - measured| / measured, in percent; predicted as the network at work will.
double percent_error(std::span<const float> outputs, std::span<const double> ms,
                     const predict::OutputScaling& scaling);

/// Samples between two steps of the optimizer.
std::size_t batch_size(std::size_t samples);

/// How a network's number is to be read as a time, given the times of training.
predict::OutputScaling fit_output(std::span<const double> ms, predict::Transform transform);

/// What the loss is made of.
Targets make_targets(std::vector<double> ms, const predict::OutputScaling& scaling);

/// Mean and deviation of each column, of rows one after the other.
predict::InputScaling fit_inputs(std::span<const double> rows, std::size_t columns,
                                 predict::Transform transform);

}  // namespace fleetfit::train
