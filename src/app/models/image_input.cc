#include "app/models/image_input.h"

#include <fmt/format.h>

namespace fleetfit::app {
namespace {

bool is_channels(std::int64_t extent) { return extent == 1 || extent == 3; }

tl::unexpected<Error> refuse(const std::string& what) {
  return fail(ErrorCode::invalid_input, fmt::format("{}, so images cannot be its input", what));
}

}  // namespace

Result<data::Preprocessing> image_preprocessing(const graph::Graph& graph) {
  if (graph.inputs.size() != 1) return refuse(fmt::format("it has {} inputs", graph.inputs.size()));
  const auto& input = graph.tensor(graph.inputs[0]);
  if (input.dtype != graph::DType::f32) return refuse("its input is not float32");
  if (!input.shape || input.shape->size() != 4) return refuse("its input has not four dimensions");
  const auto& shape = *input.shape;
  if (is_channels(shape[1]))
    return data::Preprocessing{.height = shape[2], .width = shape[3], .channels = shape[1]};
  if (is_channels(shape[3]))
    return data::Preprocessing{.height = shape[1],
                               .width = shape[2],
                               .channels = shape[3],
                               .order = data::PixelOrder::nhwc};
  return refuse(fmt::format("its input {} has neither 1 nor 3 channels", graph::to_string(shape)));
}

}  // namespace fleetfit::app
