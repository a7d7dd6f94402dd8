#pragma once

#include <onnx/onnx_pb.h>

#include <span>
#include <string>
#include <vector>

#include "fleetfit/graph/import.h"

/// ONNX models for tests, made with ONNX's own classes, so that the importer's reader is not its
/// own judge.
namespace fleetfit::graph::testing {

inline onnx::ModelProto onnx_model(std::int64_t opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("test");
  return model;
}

/// Extents below zero are open and called "N".
inline void set_type(onnx::ValueInfoProto& value, const std::string& name,
                     const std::vector<std::int64_t>& shape) {
  value.set_name(name);
  auto* type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (const auto extent : shape) {
    auto* dimension = type->mutable_shape()->add_dim();
    if (extent < 0) {
      dimension->set_dim_param("N");
    } else {
      dimension->set_dim_value(extent);
    }
  }
}

inline void add_input(onnx::ModelProto& model, const std::string& name,
                      const std::vector<std::int64_t>& shape) {
  set_type(*model.mutable_graph()->add_input(), name, shape);
}

inline void add_output(onnx::ModelProto& model, const std::string& name,
                       const std::vector<std::int64_t>& shape) {
  set_type(*model.mutable_graph()->add_output(), name, shape);
}

inline onnx::NodeProto& add_node(onnx::ModelProto& model, const std::string& type,
                                 const std::vector<std::string>& inputs,
                                 const std::string& output) {
  auto& node = *model.mutable_graph()->add_node();
  node.set_name("make_" + output);
  node.set_op_type(type);
  for (const auto& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

inline onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const std::string& name,
                                           onnx::AttributeProto::AttributeType type) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

inline void add_ints(onnx::NodeProto& node, const std::string& name,
                     const std::vector<std::int64_t>& values) {
  auto& attribute = add_attribute(node, name, onnx::AttributeProto::INTS);
  for (const auto value : values) attribute.add_ints(value);
}

inline onnx::TensorProto& add_initializer(onnx::ModelProto& model, const std::string& name,
                                          const std::vector<std::int64_t>& shape) {
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const auto extent : shape) tensor.add_dims(extent);
  return tensor;
}

/// x -> Relu -> y
inline onnx::ModelProto relu_model() {
  auto model = onnx_model(17);
  add_input(model, "x", {1, 4});
  add_node(model, "Relu", {"x"}, "y");
  add_output(model, "y", {1, 4});
  return model;
}

inline Result<ImportedModel> import_text(const std::string& bytes,
                                         const std::filesystem::path& folder = "nowhere",
                                         const ImportOptions& options = {}) {
  return import_onnx(std::as_bytes(std::span(bytes)), folder, options);
}

inline Result<ImportedModel> import_proto(const onnx::ModelProto& model,
                                          const std::filesystem::path& folder = "nowhere",
                                          const ImportOptions& options = {}) {
  return import_text(model.SerializeAsString(), folder, options);
}

}  // namespace fleetfit::graph::testing
