#include "graph/onnx/onnx_model.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <charconv>

namespace fleetfit::graph::onnx_format {
namespace {

// Each message costs a few hundred bytes here and may take only two in the file. The largest
// published networks have some hundred thousand nodes and tensors.
constexpr std::size_t kMostMessages = 1'000'000;

tl::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorCode::invalid_input,
              fmt::format("not a valid ONNX model: {} makes no sense", what));
}

/// Counts what was read, to bound memory.
class Reader {
 public:
  Result<ModelMessage> model(Bytes bytes);

 private:
  Result<GraphMessage> graph(Bytes bytes);
  Result<NodeMessage> node(Bytes bytes);
  Result<AttributeMessage> attribute(Bytes bytes);
  Result<TensorMessage> tensor(Bytes bytes);
  Status external_entry(Bytes bytes, TensorMessage& tensor);
  Result<ValueMessage> value(Bytes bytes);
  Status type(Bytes bytes, ValueMessage& value);
  Status tensor_type(Bytes bytes, ValueMessage& value);
  Status shape(Bytes bytes, ValueMessage& value);
  Result<DimensionMessage> dimension(Bytes bytes);
  Status opset(Bytes bytes, ModelMessage& model);

  bool count_one() { return ++count_ <= kMostMessages; }

  template <class T>
  Status append(std::vector<T>& list, Result<T> item) {
    FLEETFIT_TRY(item);
    if (!count_one())
      return fail(ErrorCode::invalid_input, "not a valid ONNX model: more than a million parts");
    list.push_back(std::move(*item));
    return {};
  }

  std::size_t count_ = 0;
};

/// Calls `read` with each field until it fails.
template <class Read>
Status each_field(Bytes bytes, std::string_view what, Read read) {
  MessageReader reader(bytes);
  while (const auto field = reader.next()) {
    FLEETFIT_TRY(read(*field));
  }
  if (reader.failed()) return broken(what);
  return {};
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

template <class T>
Result<T> finished(const Status& status, T message) {
  FLEETFIT_TRY(status);
  return message;
}

using ModelProto = onnx::ModelProto;
using GraphProto = onnx::GraphProto;
using NodeProto = onnx::NodeProto;
using AttributeProto = onnx::AttributeProto;
using TensorProto = onnx::TensorProto;
using ValueInfoProto = onnx::ValueInfoProto;
using TypeProto = onnx::TypeProto;
using Dimension = onnx::TensorShapeProto_Dimension;

Status Reader::external_entry(Bytes bytes, TensorMessage& tensor) {
  std::string_view key;
  std::string_view text;
  auto read = each_field(bytes, "external data", [&](const Field& field) -> Status {
    if (field.number == onnx::StringStringEntryProto::kKeyFieldNumber) key = field.as_text();
    if (field.number == onnx::StringStringEntryProto::kValueFieldNumber) text = field.as_text();
    return {};
  });
  if (!read) return read;
  if (key == "location") tensor.location = text;
  if (key != "offset" && key != "length") return {};
  const auto parsed = number(text);
  if (!parsed)
    return fail(ErrorCode::invalid_input,
                fmt::format("external data: {} '{}' is no number of bytes", key, text));
  if (key == "offset") tensor.offset = *parsed;
  if (key == "length") tensor.length = parsed;
  return {};
}

Result<TensorMessage> Reader::tensor(Bytes bytes) {
  TensorMessage message;
  const auto read = each_field(bytes, "a tensor", [&](const Field& field) -> Status {
    switch (field.number) {
      case TensorProto::kDimsFieldNumber:
        if (message.dims.size() + field.payload.size() > 64 || !append_ints(field, message.dims))
          return broken("a tensor's shape");
        return {};
      case TensorProto::kDataTypeFieldNumber:
        message.data_type = field.as_int();
        return {};
      case TensorProto::kNameFieldNumber:
        message.name = field.as_text();
        return {};
      case TensorProto::kRawDataFieldNumber:
        message.raw = field.payload;
        return {};
      case TensorProto::kFloatDataFieldNumber:
      case TensorProto::kInt32DataFieldNumber:
      case TensorProto::kInt64DataFieldNumber:
      case TensorProto::kDoubleDataFieldNumber:
      case TensorProto::kUint64DataFieldNumber:
        if (!count_one()) return broken("a tensor of a million pieces");
        message.values.push_back(field);
        return {};
      case TensorProto::kExternalDataFieldNumber:
        return external_entry(field.payload, message);
      case TensorProto::kDataLocationFieldNumber:
        message.external = field.value == TensorProto::EXTERNAL;
        return {};
      default:
        return {};
    }
  });
  return finished(read, std::move(message));
}

Result<AttributeMessage> Reader::attribute(Bytes bytes) {
  AttributeMessage message;
  const auto read = each_field(bytes, "an attribute", [&](const Field& field) -> Status {
    switch (field.number) {
      case AttributeProto::kNameFieldNumber:
        message.name = field.as_text();
        return {};
      case AttributeProto::kIFieldNumber:
        message.i = field.as_int();
        return {};
      case AttributeProto::kFFieldNumber:
        message.f = field.as_float();
        return {};
      case AttributeProto::kSFieldNumber:
        message.s = field.as_text();
        return {};
      case AttributeProto::kTFieldNumber: {
        FLEETFIT_ASSIGN(auto inner, tensor(field.payload));
        message.t = std::move(inner);
        return {};
      }
      case AttributeProto::kIntsFieldNumber:
        // Packed numbers of one byte become eight.
        if (field.payload.size() > kMostMessages || !append_ints(field, message.ints))
          return broken("an attribute");
        return {};
      case AttributeProto::kFloatsFieldNumber:
        return append_floats(field, message.floats) ? Status() : broken("an attribute");
      case AttributeProto::kStringsFieldNumber:
        return append(message.strings, Result<std::string_view>(field.as_text()));
      case AttributeProto::kGFieldNumber:
      case AttributeProto::kGraphsFieldNumber:
        message.has_graph = true;
        return {};
      default:
        return {};
    }
  });
  return finished(read, std::move(message));
}

Result<NodeMessage> Reader::node(Bytes bytes) {
  NodeMessage message;
  const auto read = each_field(bytes, "a node", [&](const Field& field) -> Status {
    switch (field.number) {
      case NodeProto::kInputFieldNumber:
        return append(message.inputs, Result<std::string_view>(field.as_text()));
      case NodeProto::kOutputFieldNumber:
        return append(message.outputs, Result<std::string_view>(field.as_text()));
      case NodeProto::kNameFieldNumber:
        message.name = field.as_text();
        return {};
      case NodeProto::kOpTypeFieldNumber:
        message.type = field.as_text();
        return {};
      case NodeProto::kDomainFieldNumber:
        message.domain = field.as_text();
        return {};
      case NodeProto::kAttributeFieldNumber:
        return append(message.attributes, attribute(field.payload));
      default:
        return {};
    }
  });
  return finished(read, std::move(message));
}

Result<DimensionMessage> Reader::dimension(Bytes bytes) {
  DimensionMessage message;
  const auto read = each_field(bytes, "a dimension", [&](const Field& field) -> Status {
    if (field.number == Dimension::kDimValueFieldNumber) message.value = field.as_int();
    if (field.number == Dimension::kDimParamFieldNumber) message.parameter = field.as_text();
    return {};
  });
  return finished(read, message);
}

Status Reader::shape(Bytes bytes, ValueMessage& value) {
  value.shape.emplace();
  return each_field(bytes, "a shape", [&](const Field& field) -> Status {
    if (field.number != onnx::TensorShapeProto::kDimFieldNumber) return {};
    return append(*value.shape, dimension(field.payload));
  });
}

Status Reader::tensor_type(Bytes bytes, ValueMessage& value) {
  return each_field(bytes, "a type", [&](const Field& field) -> Status {
    if (field.number == onnx::TypeProto_Tensor::kElemTypeFieldNumber)
      value.data_type = field.as_int();
    if (field.number == onnx::TypeProto_Tensor::kShapeFieldNumber)
      return shape(field.payload, value);
    return {};
  });
}

Status Reader::type(Bytes bytes, ValueMessage& value) {
  return each_field(bytes, "a type", [&](const Field& field) -> Status {
    if (field.number != TypeProto::kTensorTypeFieldNumber) return {};
    value.is_tensor = true;
    return tensor_type(field.payload, value);
  });
}

Result<ValueMessage> Reader::value(Bytes bytes) {
  ValueMessage message;
  const auto read = each_field(bytes, "a value", [&](const Field& field) -> Status {
    if (field.number == ValueInfoProto::kNameFieldNumber) message.name = field.as_text();
    if (field.number == ValueInfoProto::kTypeFieldNumber) return type(field.payload, message);
    return {};
  });
  return finished(read, std::move(message));
}

Result<GraphMessage> Reader::graph(Bytes bytes) {
  GraphMessage message;
  const auto read = each_field(bytes, "the graph", [&](const Field& field) -> Status {
    switch (field.number) {
      case GraphProto::kNameFieldNumber:
        message.name = field.as_text();
        return {};
      case GraphProto::kNodeFieldNumber:
        return append(message.nodes, node(field.payload));
      case GraphProto::kInitializerFieldNumber:
        return append(message.initializers, tensor(field.payload));
      case GraphProto::kInputFieldNumber:
        return append(message.inputs, value(field.payload));
      case GraphProto::kOutputFieldNumber:
        return append(message.outputs, value(field.payload));
      case GraphProto::kValueInfoFieldNumber:
        return append(message.values, value(field.payload));
      case GraphProto::kSparseInitializerFieldNumber:
        message.has_sparse_initializers = true;
        return {};
      default:
        return {};
    }
  });
  return finished(read, std::move(message));
}

Status Reader::opset(Bytes bytes, ModelMessage& model) {
  std::string_view domain;
  std::int64_t version = 0;
  const auto read = each_field(bytes, "an operator set", [&](const Field& field) -> Status {
    if (field.number == onnx::OperatorSetIdProto::kDomainFieldNumber) domain = field.as_text();
    if (field.number == onnx::OperatorSetIdProto::kVersionFieldNumber) version = field.as_int();
    return {};
  });
  if (domain.empty() || domain == "ai.onnx") model.opset = version;
  return read;
}

Result<ModelMessage> Reader::model(Bytes bytes) {
  ModelMessage message;
  const auto read = each_field(bytes, "the file", [&](const Field& field) -> Status {
    switch (field.number) {
      case ModelProto::kIrVersionFieldNumber:
        message.ir_version = field.as_int();
        return {};
      case ModelProto::kOpsetImportFieldNumber:
        return opset(field.payload, message);
      case ModelProto::kGraphFieldNumber: {
        FLEETFIT_ASSIGN(auto inner, graph(field.payload));
        message.graph = std::move(inner);
        return {};
      }
      default:
        return {};
    }
  });
  return finished(read, std::move(message));
}

}  // namespace

Result<ModelMessage> read_model(Bytes bytes) {
  auto model = Reader().model(bytes);
  if (model && !model->graph)
    return fail(ErrorCode::invalid_input, "not an ONNX model: it has no graph");
  return model;
}

}  // namespace fleetfit::graph::onnx_format
