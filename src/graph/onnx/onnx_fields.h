#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fleetfit/graph/operators.h"

/// The fields of an operator that ONNX keeps in attributes, described once for import and export.
namespace fleetfit::graph::onnx_format {

class NodeReader;
class NodeWriter;

/// One of them. What a file leaves out has the value that the field has in a new operator.
struct OnnxField {
  const char* name = nullptr;  ///< of the attribute
  std::optional<std::int64_t> fallback;
  bool written_if_set = false;
  std::span<const std::string_view> choices;
  std::string_view refusal;
  bool (*read)(const OnnxField&, const NodeReader&, Operator&) = nullptr;
  void (*write)(const OnnxField&, const Operator&, NodeWriter&) = nullptr;

  /// ONNX has another value for what is left out than a new operator.
  constexpr OnnxField or_else(std::int64_t value) const {
    auto changed = *this;
    changed.fallback = value;
    return changed;
  }
  /// Not written while it is zero or false.
  constexpr OnnxField if_set() const {
    auto changed = *this;
    changed.written_if_set = true;
    return changed;
  }
  /// Why the operator is not known where the value makes no sense; {} stands for its text.
  constexpr OnnxField refused(std::string_view why) const {
    auto changed = *this;
    changed.refusal = why;
    return changed;
  }
  /// An enum, or a bool, by the names of its values in their order. Another text makes the
  /// operator one that is not known where there is a reason, and else leaves the field as it is.
  constexpr OnnxField one_of(std::span<const std::string_view> names,
                             std::string_view why = {}) const {
    auto changed = refused(why);
    changed.choices = names;
    return changed;
  }
};

// False where the attribute holds nothing that is understood.
bool read_value(const OnnxField& field, const NodeReader& reader, std::int64_t& value);
bool read_value(const OnnxField& field, const NodeReader& reader, float& value);
bool read_value(const OnnxField& field, const NodeReader& reader, Ints& value);
bool read_value(const OnnxField& field, const NodeReader& reader,
                std::optional<std::int64_t>& value);
bool read_value(const OnnxField& field, const NodeReader& reader, DType& value);

// Lists and values that are not there are left out.
void write_value(const OnnxField& field, std::int64_t value, NodeWriter& out);
void write_value(const OnnxField& field, float value, NodeWriter& out);
void write_value(const OnnxField& field, const Ints& value, NodeWriter& out);
void write_value(const OnnxField& field, const std::optional<std::int64_t>& value, NodeWriter& out);
void write_value(const OnnxField& field, DType value, NodeWriter& out);

template <auto member>
struct FieldOf;
template <class Op, class T, T Op::* member>
struct FieldOf<member> {
  /// Enums and bools pass as their numbers.
  static constexpr bool kIsChoice =
      std::is_same_v<T, bool> || (std::is_enum_v<T> && !std::is_same_v<T, DType>);

  static bool read(const OnnxField& field, const NodeReader& reader, Operator& op) {
    T& value = std::get_if<Op>(&op)->*member;
    if constexpr (kIsChoice) {
      auto number = static_cast<std::int64_t>(value);
      const bool is_known = read_value(field, reader, number);
      value = static_cast<T>(number);
      return is_known;
    } else {
      return read_value(field, reader, value);
    }
  }
  static void write(const OnnxField& field, const Operator& op, NodeWriter& out) {
    const T& value = std::get_if<Op>(&op)->*member;
    if constexpr (kIsChoice) {
      write_value(field, static_cast<std::int64_t>(value), out);
    } else {
      write_value(field, value, out);
    }
  }
};

template <auto member>
constexpr OnnxField attribute(const char* name) {
  return {.name = name, .read = FieldOf<member>::read, .write = FieldOf<member>::write};
}

/// Those of one operator, in the order in which they are written.
class OnnxFields {
 public:
  constexpr OnnxFields() = default;
  constexpr OnnxFields(std::initializer_list<OnnxField> fields) {
    for (const auto& field : fields) all_[count_++] = field;
  }
  constexpr const OnnxField* begin() const { return all_.data(); }
  constexpr const OnnxField* end() const { return all_.data() + count_; }

 private:
  std::array<OnnxField, 6> all_{};
  std::size_t count_ = 0;
};

/// A list of whole numbers that is an input, and was an attribute in old opsets.
struct FormerAttribute {
  const char* name = nullptr;
  std::size_t input = 0;
};

/// Sets the operator's fields, its kind among those of several names included, and the input that
/// was an attribute; gives the reason where one of them is not understood.
std::optional<std::string> read_fields(Operator& op, NodeReader& reader);

void write_fields(const Operator& op, NodeWriter& out);

}  // namespace fleetfit::graph::onnx_format
