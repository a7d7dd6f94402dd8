#include "graph/onnx/onnx_node.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <span>
#include <unordered_map>

#include "graph/onnx/onnx_constants.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph::onnx_format {
namespace {

using Readers = std::unordered_map<std::string_view, Result<Operator> (*)(NodeReader&)>;

Readers readers_by_name() {
  Readers readers;
  for (const auto& [type, convert] : onnx_readers()) readers.emplace(type, convert);
  return readers;
}

}  // namespace

const AttributeMessage* NodeReader::attribute(std::string_view name) const {
  for (const auto& attribute : message_.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

std::int64_t NodeReader::integer(std::string_view name, std::int64_t fallback) const {
  const auto* found = attribute(name);
  return found != nullptr && found->i ? *found->i : fallback;
}

float NodeReader::number(std::string_view name, float fallback) const {
  const auto* found = attribute(name);
  return found != nullptr && found->f ? *found->f : fallback;
}

std::string_view NodeReader::text(std::string_view name, std::string_view fallback) const {
  const auto* found = attribute(name);
  return found != nullptr && found->s ? *found->s : fallback;
}

Ints NodeReader::ints(std::string_view name) const {
  const auto* found = attribute(name);
  return found != nullptr ? found->ints : Ints{};
}

void NodeReader::place(std::size_t i, TensorId id) {
  if (node_.inputs.size() <= i) node_.inputs.resize(i + 1, kNoTensor);
  node_.inputs[i] = id;
}

void NodeReader::set_input(std::size_t i, std::string_view role, const Ints& values) {
  place(i, graph_.add_ints(fmt::format("{}.{}", node_.name, role), values));
}

void NodeReader::set_input(std::size_t i, std::string_view role, const std::vector<float>& values) {
  place(i, graph_.add_floats(fmt::format("{}.{}", node_.name, role), {std::ssize(values)}, values));
}

void NodeReader::keep_inputs(std::size_t count) {
  if (node_.inputs.size() > count) node_.inputs.resize(count);
}

Operator unknown(const NodeReader& reader, std::string reason) {
  return Unknown{.domain = {},
                 .type = std::string(reader.type()),
                 .attributes = {},
                 .reason = std::move(reason)};
}

tl::unexpected<Error> bad_attribute(std::string_view name) {
  return fail(ErrorCode::invalid_input, fmt::format("attribute {} has no valid value", name));
}

Result<Operator> convert_operator(NodeReader& reader) {
  static const auto kReaders = readers_by_name();
  const auto found = kReaders.find(reader.type());
  if (found == kReaders.end()) return unknown(reader, "no such operator is known");
  return found->second(reader);
}

namespace {

onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const char* name,
                                    onnx::AttributeProto::AttributeType type) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

}  // namespace

void describe_tensor(const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_name(tensor.name);
  proto.set_data_type(data_type_of(tensor.dtype));
  for (const auto extent : *tensor.shape) proto.add_dims(extent);
}

void write_tensor(const Tensor& tensor, onnx::TensorProto& proto) {
  describe_tensor(tensor, proto);
  std::string& raw = *proto.mutable_raw_data();
  raw.resize(tensor.data->size_bytes());
  tensor.data->copy_to(std::as_writable_bytes(std::span(raw)));
}

void NodeWriter::set(const char* name, std::int64_t value) {
  add_attribute(node_, name, onnx::AttributeProto::INT).set_i(value);
}

void NodeWriter::set(const char* name, float value) {
  add_attribute(node_, name, onnx::AttributeProto::FLOAT).set_f(value);
}

void NodeWriter::set(const char* name, std::string_view value) {
  add_attribute(node_, name, onnx::AttributeProto::STRING).set_s(std::string(value));
}

void NodeWriter::set(const char* name, const Ints& values) {
  auto& attribute = add_attribute(node_, name, onnx::AttributeProto::INTS);
  for (const auto value : values) attribute.add_ints(value);
}

void NodeWriter::set(const char* name, const Tensor& value) {
  write_tensor(value, *add_attribute(node_, name, onnx::AttributeProto::TENSOR).mutable_t());
}

void NodeWriter::add_input(std::string_view role, Tensor constant) {
  constant.name = fmt::format("{}/{}", node_.output(0), role);
  write_tensor(constant, *graph_.add_initializer());
  node_.add_input(constant.name);
}

void NodeWriter::leave_out_input() { node_.add_input(""); }

}  // namespace fleetfit::graph::onnx_format
