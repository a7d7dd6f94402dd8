#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/result.h"
#include "fleetfit/yaml/yaml.h"

/// Fields of YAML files as C++ values, each read by a function of its own.
namespace fleetfit::yaml {

/// Reads a record by its description (core/fields.h), and leaves it half read where it fails.
/// Fields that functions read from JSON are left to the caller and `read_field`.
Status read(const YamlView& view, const core::Fields& fields, void* record);

template <core::Described T>
Status read(const YamlView& view, T& record) {
  return read(view, fields_of(&record), &record);
}

template <core::Described T>
Result<T> read(const YamlView& view) {
  T record{};
  FLEETFIT_TRY(read(view, record));
  return record;
}

/// The first of them that went wrong.
Status first_error(std::initializer_list<Status> all);

/// Reads a field into `target` by `parse`; leaves it as it is if the field is absent.
template <class T, class Parse>
Status read_field(const YamlView& view, std::string_view key, T& target, const Parse& parse) {
  FLEETFIT_ASSIGN(const auto field, view.find(key));
  if (!field) return {};
  FLEETFIT_ASSIGN(auto value, parse(*field));
  target = std::move(value);
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

/// A list of texts, one at least.
Result<std::vector<std::string>> read_texts(const YamlView& view);

/// Fails, naming the key, if one of them is absent.
Status require(const YamlView& view, std::initializer_list<std::string_view> keys);

}  // namespace fleetfit::yaml
