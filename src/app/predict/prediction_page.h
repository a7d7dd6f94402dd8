#pragma once

#include <string>

#include "fleetfit/app/predicting.h"
#include "fleetfit/predict/kernel_predictor.h"

namespace fleetfit::app {

/// A page of HTML: predicted against measured, errors by kind of kernel, what prices depend on,
/// what to measure next.
std::string prediction_page(const Evaluation& evaluation,
                            const predict::KernelPredictor& predictor);

}  // namespace fleetfit::app
