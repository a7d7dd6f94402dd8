#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <nlohmann/json.hpp>
