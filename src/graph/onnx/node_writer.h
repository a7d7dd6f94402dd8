#pragma once

#include <cstdint>
#include <string_view>

#include "fleetfit/graph/graph.h"

namespace onnx {
class GraphProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace fleetfit::graph::onnx_format {

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
