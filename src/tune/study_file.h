#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/tune/study.h"
#include "tune/yaml_document.h"

/// The parts of a study file, each read by a function of its own.
namespace fleetfit::tune {

/// The first of them that went wrong.
Status first_error(std::initializer_list<Status> all);

/// Reads a field into `target` by `parse`; leaves it as it is if the field is absent.
template <class T, class Parse>
Status read_field(const YamlView& view, std::string_view key, T& target, const Parse& parse) {
  const auto field = view.find(key);
  if (!field) return tl::unexpected(field.error());
  if (!*field) return {};
  auto value = parse(**field);
  if (!value) return tl::unexpected(value.error());
  target = std::move(*value);
  return {};
}

template <class T>
using Names = std::initializer_list<std::pair<std::string_view, T>>;

/// One of several words.
template <class T>
Result<T> read_word(const YamlView& view, const Names<T>& names) {
  const auto text = view.as_text();
  std::string all;
  for (const auto& [name, value] : names) {
    if (text && *text == name) return value;
    all += all.empty() ? "" : ", ";
    all += name;
  }
  return view.expected("one of " + all);
}

Result<double> read_positive(const YamlView& view);
Result<bool> read_boolean(const YamlView& view);
/// From 1 to 10^9.
Result<std::int64_t> read_count(const YamlView& view);

/// Adds the parameters of one group to those that stand before it. Their names are the keys.
Status read_group(const YamlView& view, Group group, std::vector<Parameter>& all);
Result<Parameters> read_parameters(const YamlView& view);

Result<InferenceStudy> read_inference(const YamlView& view);
Result<Algorithm> read_algorithm(const YamlView& view);
Result<Resources> read_resources(const YamlView& view);
/// "4G", as a number of bytes.
Result<std::optional<std::int64_t>> read_bytes(const YamlView& view);

/// What is known of the study when its goals are read: inference and algorithm.
Result<Objective> read_objective(const YamlView& view, const Study& study);
Result<Constraints> read_constraints(const YamlView& view, const Study& study);

/// A built-in workload has to be known, and to take the study's parameters.
Status check_builtin(const YamlView& study, const Workload& workload);

}  // namespace fleetfit::tune
