#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/names.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/learned/device_features.h"
#include "fleetfit/learned/model.h"

/// The best design for a device, at once.
namespace fleetfit::learned {

struct AnswerOptions {
  std::size_t beam = 4;          ///< designs that each optimizer network proposes
  std::size_t weight_steps = 6;  ///< of the search for weights that meet a limit
  std::size_t starts = 3;        ///< proposals from which neighbours are looked at
  std::size_t refinements = 6;   ///< steps to better neighbours, at most
};

/// Why an answer may be wrong.
enum class Doubt : std::uint8_t {
  far_device,   ///< its features are unlike those of all known devices
  wide_spread,  ///< the networks do not agree
  over_limit,   ///< all proposals break a limit with more than the risk that is allowed
  filled_in,    ///< features were missing
};

/// "far_device", …
core::Names names_of(Doubt);
using core::to_string;

struct CostAnswer {
  double value = 0;   ///< predicted
  double safe = 0;    ///< nine of ten such predictions are not exceeded by more
  double risk = 0;    ///< the chance that the limit is broken; 0 without one
  double spread = 0;  ///< of the ensemble, relative
};

struct Answer {
  std::vector<space::Choice> design = {};
  double accuracy = 0;
  double accuracy_spread = 0;
  std::vector<CostAnswer> costs = {};
  bool keeps_limits = true;  ///< with no more than the risk that is allowed
  std::vector<Doubt> doubts = {};
  bool by_search = false;  ///< the optimizer was unsure, an ordinary search was made
  std::size_t judged = 0;  ///< designs that the networks looked at
};

/// What the optimizer networks propose, the best of it by the performance networks, moved to better
/// neighbours. Within limits, weights that meet them are searched, too. The goal was checked.
Answer answer(const DeviceJudge& judge, const Goal& goal, const AnswerOptions& options = {});

/// An answer in doubt (other than by what was filled in) is asked of an ordinary search with the
/// same predictions instead: all designs of a small space, evolution in a large one; `by_search`
/// says so. Fails as searching does.
Result<Answer> sure_answer(const DeviceJudge& judge, const Goal& goal, core::ThreadPool& pool,
                           std::uint64_t seed, const AnswerOptions& options = {});

/// The search that `sure_answer` falls back to.
Result<Answer> searched_answer(const DeviceJudge& judge, const Goal& goal, core::ThreadPool& pool,
                               std::uint64_t seed);

/// What the networks say of a given design.
Answer judged_answer(const DeviceJudge& judge, const Goal& goal, space::Design design);

/// The features of a device of a file, in the order of the model's, NaN where one is missing. Fails
/// with `invalid_input`, naming file and column, if the file has not all columns.
Result<std::vector<double>> feature_row(const DeviceInputs& inputs, const DeviceFeatures& features,
                                        std::size_t device);

/// Reads the device of a file for the model; errors name file and device.
Result<DeviceVector> device_of(const Model& model, const DeviceFeatures& features,
                               std::size_t device);

}  // namespace fleetfit::learned
