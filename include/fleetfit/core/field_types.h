#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/names.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/core/time.h"

/// The C++ types that members of described records have (fields.h), as code sees them that does not
/// know them: tables of functions.
namespace fleetfit::core {

struct Fields;

template <class T>
concept Described = requires(const T* record) {
  { fields_of(record) } -> std::same_as<Fields>;
};

/// A type that reads and writes itself, by functions that stand beside it.
template <class T>
concept OwnJson =
    requires(const T& from, T& into, nlohmann::ordered_json& json, const JsonView& view) {
      { write_json(json, from) } -> std::same_as<void>;
      { read_json(view, into) } -> std::same_as<Status>;
    };

/// A value of a C++ type that the code at hand does not know. Which functions are there depends on
/// the shape.
struct FieldType {
  enum class Shape : std::uint8_t {
    text,      ///< a std::string
    boolean,   ///< whole, set_whole
    integer,   ///< whole, set_whole; limits
    number,    ///< number, set_number
    choice,    ///< an enum with names: whole, set_whole, names
    time,      ///< whole, set_whole: milliseconds since 1970
    record,    ///< fields
    list,      ///< size, at, inner, and either clear and add or a size that is fixed
    optional,  ///< a list of one element at most
    own,       ///< read, write
  };

  Shape shape = Shape::text;
  bool is_unsigned = false;          ///< an integer whose `whole` may not fit
  std::size_t fixed_size = 0;        ///< of a list; 0: any
  IntegerRange limits = {};          ///< of what the C++ type holds
  const FieldType* inner = nullptr;  ///< of the elements
  Fields (*fields)() = nullptr;
  Names (*names)() = nullptr;
  std::int64_t (*whole)(const void*) = nullptr;
  void (*set_whole)(void*, std::int64_t) = nullptr;
  double (*number)(const void*) = nullptr;
  void (*set_number)(void*, double) = nullptr;
  std::size_t (*size)(const void*) = nullptr;
  const void* (*at)(const void*, std::size_t) = nullptr;
  void (*clear)(void*) = nullptr;
  void* (*add)(void*) = nullptr;  ///< a new last element
  Status (*read)(const JsonView&, void*) = nullptr;
  void (*write)(const void*, nlohmann::ordered_json&) = nullptr;
};

template <class T>
constexpr FieldType make_field_type();
template <class T>
inline constexpr FieldType kFieldType = make_field_type<T>();

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

/// What can be cast to a whole number.
template <class T>
constexpr FieldType whole_type(FieldType::Shape shape) {
  FieldType type{.shape = shape};
  type.whole = [](const void* value) {
    return static_cast<std::int64_t>(*static_cast<const T*>(value));
  };
  type.set_whole = [](void* value, std::int64_t whole) {
    *static_cast<T*>(value) = static_cast<T>(whole);
  };
  return type;
}

template <class T>
constexpr FieldType integer_type() {
  constexpr auto kLeast = std::numeric_limits<T>::min();
  constexpr auto kMost = std::numeric_limits<T>::max();
  auto type = whole_type<T>(FieldType::Shape::integer);
  type.is_unsigned = std::is_unsigned_v<T>;
  type.limits.min = static_cast<std::int64_t>(kLeast);
  if (std::in_range<std::int64_t>(kMost)) type.limits.max = static_cast<std::int64_t>(kMost);
  return type;
}

template <class Enum>
constexpr FieldType choice_type() {
  static_assert(Named<Enum>, "the enum has no names_of");
  auto type = whole_type<Enum>(FieldType::Shape::choice);
  type.names = [] { return names_of(Enum{}); };
  return type;
}

template <class T>
constexpr FieldType number_type() {
  FieldType type{.shape = FieldType::Shape::number};
  type.number = [](const void* value) {
    return static_cast<double>(*static_cast<const T*>(value));
  };
  type.set_number = [](void* value, double number) {
    *static_cast<T*>(value) = static_cast<T>(number);
  };
  return type;
}

constexpr FieldType time_type() {
  FieldType type{.shape = FieldType::Shape::time};
  type.whole = [](const void* value) -> std::int64_t {
    return static_cast<const Time*>(value)->time_since_epoch().count();
  };
  type.set_whole = [](void* value, std::int64_t whole) {
    *static_cast<Time*>(value) = Time(std::chrono::milliseconds(whole));
  };
  return type;
}

/// Two numbers: its ends.
template <class Ends>
constexpr FieldType interval_type() {
  FieldType type{
      .shape = FieldType::Shape::list, .fixed_size = 2, .inner = &kFieldType<decltype(Ends::low)>};
  type.size = [](const void*) -> std::size_t { return 2; };
  type.at = [](const void* value, std::size_t index) -> const void* {
    const auto* ends = static_cast<const Ends*>(value);
    return index == 0 ? &ends->low : &ends->high;
  };
  return type;
}

template <class Optional>
constexpr FieldType optional_type() {
  FieldType type{.shape = FieldType::Shape::optional,
                 .inner = &kFieldType<typename Optional::value_type>};
  type.size = [](const void* value) -> std::size_t {
    return static_cast<const Optional*>(value)->has_value() ? 1 : 0;
  };
  type.at = [](const void* value, std::size_t) -> const void* {
    return &**static_cast<const Optional*>(value);
  };
  type.clear = [](void* value) { static_cast<Optional*>(value)->reset(); };
  type.add = [](void* value) -> void* { return &static_cast<Optional*>(value)->emplace(); };
  return type;
}

template <class List>
constexpr FieldType list_type() {
  FieldType type{.shape = FieldType::Shape::list, .inner = &kFieldType<typename List::value_type>};
  type.size = [](const void* value) { return static_cast<const List*>(value)->size(); };
  type.at = [](const void* value, std::size_t index) -> const void* {
    return &(*static_cast<const List*>(value))[index];
  };
  type.clear = [](void* value) { static_cast<List*>(value)->clear(); };
  type.add = [](void* value) -> void* { return &static_cast<List*>(value)->emplace_back(); };
  return type;
}

template <class T>
constexpr FieldType own_type() {
  static_assert(OwnJson<T>, "the type has neither fields_of nor read_json and write_json");
  FieldType type{.shape = FieldType::Shape::own};
  type.read = [](const JsonView& view, void* value) -> Status {
    return read_json(view, *static_cast<T*>(value));
  };
  type.write = [](const void* value, nlohmann::ordered_json& json) {
    write_json(json, *static_cast<const T*>(value));
  };
  return type;
}

template <class T>
constexpr FieldType make_field_type() {
  using Shape = FieldType::Shape;
  if constexpr (std::is_same_v<T, std::string>) {
    return {.shape = Shape::text};
  } else if constexpr (std::is_same_v<T, bool>) {
    return whole_type<T>(Shape::boolean);
  } else if constexpr (std::is_enum_v<T>) {
    return choice_type<T>();
  } else if constexpr (std::is_integral_v<T>) {
    return integer_type<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    return number_type<T>();
  } else if constexpr (std::is_same_v<T, Time>) {
    return time_type();
  } else if constexpr (std::is_same_v<T, Interval>) {
    return interval_type<T>();
  } else if constexpr (kIsOptional<T>) {
    return optional_type<T>();
  } else if constexpr (kIsList<T>) {
    return list_type<T>();
  } else if constexpr (Described<T>) {
    return {.shape = Shape::record,
            .fields = [] { return fields_of(static_cast<const T*>(nullptr)); }};
  } else {
    return own_type<T>();
  }
}

}  // namespace fleetfit::core
