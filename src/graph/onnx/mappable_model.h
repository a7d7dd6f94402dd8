#pragma once

#include <string>

namespace onnx {
class ModelProto;
}

namespace fleetfit::graph::onnx_format {

/// The model as bytes in which the data of every initializer begins at a multiple of 64 bytes from
/// the start. Any reader of protobuf messages takes them. Takes the initializers out of `model`.
std::string serialize_mappable(onnx::ModelProto& model);

}  // namespace fleetfit::graph::onnx_format
