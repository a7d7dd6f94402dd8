#include "graph/onnx/onnx_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/onnx/onnx_constants.h"
#include "graph/onnx/onnx_node.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph::onnx_format {

bool read_value(const OnnxField& field, const NodeReader& reader, std::int64_t& value) {
  if (field.choices.empty()) {
    value = reader.integer(field.name, field.fallback.value_or(value));
    return true;
  }
  const auto usual = field.choices[static_cast<std::size_t>(value)];
  const auto found = std::ranges::find(field.choices, reader.text(field.name, usual));
  if (found == field.choices.end()) return field.refusal.empty();
  value = found - field.choices.begin();
  return true;
}

bool read_value(const OnnxField& field, const NodeReader& reader, float& value) {
  value = reader.number(field.name, value);
  return true;
}

bool read_value(const OnnxField& field, const NodeReader& reader, Ints& value) {
  value = reader.ints(field.name);
  return true;
}

bool read_value(const OnnxField& field, const NodeReader& reader,
                std::optional<std::int64_t>& value) {
  if (reader.has(field.name)) value = reader.integer(field.name, 0);
  return true;
}

bool read_value(const OnnxField& field, const NodeReader& reader, DType& value) {
  value = dtype_of(reader.integer(field.name, 0));
  return size_of(value) != 0;
}

void write_value(const OnnxField& field, std::int64_t value, NodeWriter& out) {
  if (!field.choices.empty()) return out.set(field.name, field.choices[value]);
  if (value != 0 || !field.written_if_set) out.set(field.name, value);
}

void write_value(const OnnxField& field, float value, NodeWriter& out) {
  out.set(field.name, value);
}

void write_value(const OnnxField& field, const Ints& value, NodeWriter& out) {
  if (!value.empty()) out.set(field.name, value);
}

void write_value(const OnnxField& field, const std::optional<std::int64_t>& value,
                 NodeWriter& out) {
  if (value) out.set(field.name, *value);
}

void write_value(const OnnxField& field, DType value, NodeWriter& out) {
  out.set(field.name, std::int64_t{data_type_of(value)});
}

std::optional<std::string> read_fields(Operator& op, NodeReader& reader) {
  const auto& entry = traits(op);
  if (const auto& kinds = entry.kinds; !kinds.names.empty())
    kinds.set(op, std::ranges::find(kinds.names, reader.type()) - kinds.names.begin());
  for (const auto& field : entry.onnx) {
    if (!field.read(field, reader, op))
      return fmt::format(fmt::runtime(field.refusal), reader.text(field.name, {}));
  }
  if (const auto [name, input] = entry.was_attribute; name != nullptr && reader.has(name))
    reader.set_input(input, name, reader.ints(name));
  return std::nullopt;
}

void write_fields(const Operator& op, NodeWriter& out) {
  for (const auto& field : traits(op).onnx) field.write(field, op, out);
}

}  // namespace fleetfit::graph::onnx_format
