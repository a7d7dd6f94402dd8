#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "graph/onnx/wire.h"

/// The messages of an ONNX file, as far as they matter here. Everything refers to the bytes of the
/// file.
namespace fleetfit::graph::onnx_format {

struct TensorMessage {
  std::string_view name;
  std::vector<std::int64_t> dims;
  std::int64_t data_type = 0;
  std::optional<Bytes> raw;
  std::vector<Field> values;  ///< of float_data, int32_data, int64_data, double_data or uint64_data
  bool external = false;
  std::string_view location;  ///< of external data
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
};

struct AttributeMessage {
  std::string_view name;
  std::optional<std::int64_t> i;
  std::optional<float> f;
  std::optional<std::string_view> s;
  std::optional<TensorMessage> t;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;
  bool has_graph = false;
};

struct NodeMessage {
  std::string_view name;
  std::string_view type;
  std::string_view domain;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<AttributeMessage> attributes;
};

struct DimensionMessage {
  std::optional<std::int64_t> value;
  std::string_view parameter;
};

struct ValueMessage {
  std::string_view name;
  bool is_tensor = false;
  std::int64_t data_type = 0;
  std::optional<std::vector<DimensionMessage>> shape;
};

struct GraphMessage {
  std::string_view name;
  std::vector<NodeMessage> nodes;
  std::vector<TensorMessage> initializers;
  std::vector<ValueMessage> inputs;
  std::vector<ValueMessage> outputs;
  std::vector<ValueMessage> values;
  bool has_sparse_initializers = false;
};

struct ModelMessage {
  std::optional<std::int64_t> ir_version;
  std::optional<std::int64_t> opset;  ///< of the standard operators
  std::optional<GraphMessage> graph;
};

/// Reads a file's bytes; `invalid_input` where they are no ONNX model. Memory stays within a small
/// multiple of the number of messages, of which there are at most a million.
Result<ModelMessage> read_model(Bytes bytes);

}  // namespace fleetfit::graph::onnx_format
