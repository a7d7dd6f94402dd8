#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fleetfit/graph/operators.h"

namespace flatbuffers {
class Table;
struct TypeTable;
}  // namespace flatbuffers

namespace fleetfit::graph::tflite {

/// The options of an operator of the file, by the names of the schema's fields. What the file
/// leaves out is 0, or the fallback.
class Options {
 public:
  Options() = default;
  Options(const flatbuffers::Table* table, const flatbuffers::TypeTable* type)
      : table_(table), type_(type) {}

  /// Whether the file holds any.
  explicit operator bool() const { return table_ != nullptr; }

  std::int64_t integer(std::string_view field, std::int64_t fallback = 0) const;
  float number(std::string_view field) const;
  bool flag(std::string_view field) const { return integer(field) != 0; }

  /// The name of an enum's value; "" for one that the schema does not have.
  std::string_view name(std::string_view field) const;

  /// The type that a field of the schema's TensorType stands for.
  DType type(std::string_view field) const;

  /// A list of whole numbers, if there are at most so many; nothing if the file has no list.
  struct List {
    bool is_long = false;
    Ints values;
  };
  std::optional<List> list(std::string_view field, std::size_t most) const;

 private:
  /// The place of a field in the schema's table. There has to be one of the name.
  std::size_t place(std::string_view field) const;

  const flatbuffers::Table* table_ = nullptr;
  const flatbuffers::TypeTable* type_ = nullptr;
};

}  // namespace fleetfit::graph::tflite
