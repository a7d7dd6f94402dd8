#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/tune/study.h"
#include "fleetfit/yaml/fields.h"

/// The parts of a study file, each read by a function of its own.
namespace fleetfit::tune {

using yaml::first_error;
using yaml::read_boolean;
using yaml::read_field;
using yaml::read_positive;
using yaml::read_texts;
using yaml::read_word;
using yaml::require;
using yaml::YamlNode;
using yaml::YamlView;

/// Adds the parameters of one group to those that stand before it. Their names are the keys.
Status read_group(const YamlView& view, Group group, std::vector<Parameter>& all);
Result<Parameters> read_parameters(const YamlView& view);

Result<InferenceStudy> read_inference(const YamlView& view);
Result<Algorithm> read_algorithm(const YamlView& view);

/// What is known of the study when its goals are read: inference and algorithm.
Result<Objective> read_objective(const YamlView& view, const Study& study);
Result<Constraints> read_constraints(const YamlView& view, const Study& study);

/// A built-in workload has to be known, and to take the study's parameters.
Status check_builtin(const YamlView& study, const Workload& workload);

}  // namespace fleetfit::tune
