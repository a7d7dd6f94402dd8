#include <onnx/onnx_pb.h>
