#include "train/label_form.h"

#include <fmt/format.h>

namespace fleetfit::train {

bool is_map(const graph::Tensor& output) {
  constexpr std::size_t kRank = 4;  // batch, classes, height, width
  const auto& shape = output.shape;
  return shape && shape->size() == kRank && ((*shape)[2] > 1 || (*shape)[3] > 1);
}

Status check_label_form(const graph::Tensor& input, const graph::Tensor& output,
                        const data::Dataset& data) {
  FLEETFIT_ASSIGN(const auto first, data.item(0));
  const bool of_pixels = !first.mask.empty();
  if (is_map(output) != of_pixels)
    return fail(
        ErrorCode::invalid_input,
        fmt::format("output '{}' has a class for each {}, the data one for each {}", output.name,
                    of_pixels ? "image" : "pixel", of_pixels ? "pixel" : "image"));
  if (!of_pixels) return {};
  const auto& in = *input.shape;
  const auto& out = *output.shape;
  if (in.size() == out.size() && in[2] == out[2] && in[3] == out[3]) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("output '{}' is {}, and should have a class for each pixel of the input, "
                          "which is {}",
                          output.name, graph::to_string(out), graph::to_string(in)));
}

}  // namespace fleetfit::train
