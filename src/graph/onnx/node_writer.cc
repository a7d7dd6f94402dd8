#include "graph/onnx/node_writer.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <span>

#include "graph/onnx/onnx_constants.h"

namespace fleetfit::graph::onnx_format {
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
