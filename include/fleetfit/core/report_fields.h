#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "fleetfit/core/fields.h"

/// Descriptions of records that are only written: reports. A report is a struct and one table, and
/// `core::to_json(report)` writes it. Lists, optionals, enums with names and described records are
/// written by themselves.
///
///     FLEETFIT_REPORT(WrittenSubnet, subnet, file, bytes)  // the keys are the members' names
///
///     core::Fields fields_of(const Load*) {
///       static constexpr core::Field kAll[] = {
///           FLEETFIT_MEMBERS(Load, requests, median_ms),
///           core::field<&Load::in_ms, &Tail::p95>("p95_ms"),  // another key
///           core::field<&Load::note>("note").omit_default(),
///           core::computed<&Load::ratio>("ratio"),  // a member function
///           core::computed("share", [](const Load& load) { return load.right / load.all; })};
///       return {.all = kAll};
///     }
namespace fleetfit::core {

/// Declared only: the record that a function takes.
template <class Function, class Value, class Record>
Record record_of(Value (Function::*)(const Record&) const);
template <class Value, class Record>
Record record_of(Value (Record::*)() const);

template <class Function, class Record, class Json>
void write_computed(const void* record, Json& json) {
  decltype(auto) value = Function()(*static_cast<const Record*>(record));
  using Value = std::remove_cvref_t<decltype(value)>;
  if constexpr (std::is_same_v<Value, Json>)
    json = value;
  else if constexpr (std::is_convertible_v<Value, std::string_view>)
    json = std::string(std::string_view(value));
  else
    json = value_json(kFieldType<Value>, Field{.name = {}}, &value);
}

/// A field that is worked out, by a lambda that takes the record and captures nothing. It gives
/// JSON, a text, or any type that a member may have; null is left out if the field is
/// `omit_default()`. The source includes <nlohmann/json.hpp>.
template <class Function>
constexpr Field computed(std::string_view name, Function /*its type is enough*/) {
  Field field{.name = name};
  field.write =
      write_computed<Function, decltype(record_of(&Function::operator())), nlohmann::ordered_json>;
  return field;
}
/// By a member function without parameters.
template <auto member>
constexpr Field computed(std::string_view name) {
  return computed(name, [](const decltype(record_of(member))& record) -> decltype(auto) {
    return (record.*member)();
  });
}

}  // namespace fleetfit::core

/// The whole description of a record whose keys are the names of its members, in this order.
#define FLEETFIT_REPORT(Record, ...)                                                           \
  ::fleetfit::core::Fields fields_of(const Record*) {                                          \
    static constexpr ::fleetfit::core::Field kAll[] = {FLEETFIT_MEMBERS(Record, __VA_ARGS__)}; \
    return {.all = kAll};                                                                      \
  }
