#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "graph/onnx/onnx_model.h"

namespace onnx {
class GraphProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace fleetfit::graph::onnx_format {

/// A node on its way from the file into the graph: attributes by name, inputs as tensors.
/// Converters read it and change `node`.
class NodeReader {
 public:
  NodeReader(const NodeMessage& message, std::int64_t opset, Graph& graph, Node& node)
      : message_(message), opset_(opset), graph_(graph), node_(node) {}

  std::string_view type() const { return message_.type; }
  std::int64_t opset() const { return opset_; }
  Node& node() { return node_; }
  Graph& graph() { return graph_; }

  const AttributeMessage* attribute(std::string_view name) const;
  bool has(std::string_view name) const { return attribute(name) != nullptr; }

  // An attribute's value, or the fallback if the node has none of that name.
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  float number(std::string_view name, float fallback) const;
  std::string_view text(std::string_view name, std::string_view fallback) const;
  Ints ints(std::string_view name) const;

  /// The tensor at an input, kNoTensor if it is left out.
  TensorId input(std::size_t i) const {
    return i < node_.inputs.size() ? node_.inputs[i] : kNoTensor;
  }
  bool has_input(std::size_t i) const { return input(i) != kNoTensor; }

  /// The numbers of a constant input.
  std::optional<Ints> input_ints(std::size_t i) const { return constant_ints(graph_, input(i)); }
  std::optional<std::vector<double>> input_numbers(std::size_t i) const {
    return constant_numbers(graph_, input(i));
  }

  /// Puts a constant at an input: what old opsets kept in attributes.
  void set_input(std::size_t i, std::string_view role, const Ints& values);
  void set_input(std::size_t i, std::string_view role, const std::vector<float>& values);

  /// Drops inputs from the i-th on.
  void keep_inputs(std::size_t count);

 private:
  void place(std::size_t i, TensorId id);

  const NodeMessage& message_;
  std::int64_t opset_;
  Graph& graph_;
  Node& node_;
};

/// A node that nothing here understands.
Operator unknown(const NodeReader& reader, std::string reason);

tl::unexpected<Error> bad_attribute(std::string_view name);

/// The operator that the node stands for; also rewrites the node's inputs to the form of opset 17.
/// An `Unknown`, with a reason, where nothing here fits. Fails with `invalid_input` if an attribute
/// has no valid value.
Result<Operator> convert_operator(NodeReader& reader);

/// Name, type and shape of a tensor, without its data.
void describe_tensor(const Tensor& tensor, onnx::TensorProto& proto);

/// A constant with its data.
void write_tensor(const Tensor& tensor, onnx::TensorProto& proto);

/// A node on its way into the file: takes attributes, and what ONNX keeps in further inputs.
class NodeWriter {
 public:
  NodeWriter(onnx::GraphProto& graph, onnx::NodeProto& node) : graph_(graph), node_(node) {}

  void set(const char* name, std::int64_t value);
  void set(const char* name, float value);
  void set(const char* name, std::string_view value);
  void set(const char* name, const Ints& values);
  void set(const char* name, bool value) { set(name, std::int64_t{value ? 1 : 0}); }
  void set(const char* name, const Tensor& value);

  /// One more input, a constant; its name is made of the role.
  void add_input(std::string_view role, Tensor constant);
  void leave_out_input();

 private:
  onnx::GraphProto& graph_;
  onnx::NodeProto& node_;
};

}  // namespace fleetfit::graph::onnx_format
