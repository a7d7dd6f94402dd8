#include "graph/operators/windows.h"

#include <algorithm>
#include <array>

#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::graph {

bool all_from(const Ints& values, std::int64_t least) {
  return std::all_of(values.begin(), values.end(),
                     [least](std::int64_t v) { return v >= least && v <= kMostWindow; });
}

Status check_window(const Window& window, std::size_t spatial) {
  for (const auto* list :
       {&window.kernel, &window.strides, &window.dilations, &window.pads_begin, &window.pads_end}) {
    if (list->size() != spatial)
      return misfit("a window of {} dimensions on an image of {}", list->size(), spatial);
  }
  if (!all_from(window.kernel, 1) || !all_from(window.strides, 1) ||
      !all_from(window.dilations, 1)) {
    return misfit("kernel, strides and dilations must be positive and sane");
  }
  if (!all_from(window.pads_begin, -kMostWindow) || !all_from(window.pads_end, -kMostWindow)) {
    return misfit("pads are absurdly large");
  }
  return {};
}

std::int64_t reach(const Window& window, std::size_t dimension) {
  return window.dilations[dimension] * (window.kernel[dimension] - 1) + 1;
}

Result<Ints> windows_that_fit(const Window& window, const Ints& extents) {
  const auto padding = resolve_padding(window, extents);
  Ints result;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto stride = window.strides[i];
    const auto room = extents[i] + padding.begin[i] + padding.end[i] - reach(window, i);
    if (room < 0) {
      return misfit("a window of {} does not fit into {} elements padded by {} and {}",
                    reach(window, i), extents[i], padding.begin[i], padding.end[i]);
    }
    auto count = room / stride + 1;
    if (window.ceil_mode && room % stride != 0) {
      // A window that would start in the padding behind the image is left out.
      if (count * stride < extents[i] + padding.begin[i]) ++count;
    }
    result.push_back(count);
  }
  return result;
}

Shape image_shape(std::int64_t batch, std::int64_t channels, const Ints& extents, Layout layout) {
  Shape shape{batch};
  if (layout == Layout::nchw) shape.push_back(channels);
  shape.insert(shape.end(), extents.begin(), extents.end());
  if (layout == Layout::nhwc) shape.push_back(channels);
  return shape;
}

Status check_image(const Shape& shape) {
  if (shape.size() < 3)
    return misfit("{} is no image: it needs a batch, channels and at least one spatial dimension",
                  to_string(shape));
  return {};
}

Ints spatial_extents(const Shape& shape, Layout layout) {
  const auto first = layout == Layout::nchw ? 2 : 1;
  return {shape.begin() + first,
          shape.begin() + first + static_cast<std::ptrdiff_t>(shape.size() - 2)};
}

std::size_t channel_axis(const Shape& shape, Layout layout) {
  return layout == Layout::nchw ? 1 : shape.size() - 1;
}

Padding resolve_padding(const Window& window, const Ints& extents) {
  if (window.auto_pad == AutoPad::explicit_pads) return {window.pads_begin, window.pads_end};
  Padding padding{Ints(extents.size(), 0), Ints(extents.size(), 0)};
  if (window.auto_pad == AutoPad::valid) return padding;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto stride = window.strides[i];
    const auto windows = (extents[i] + stride - 1) / stride;
    const auto total =
        std::max<std::int64_t>(0, (windows - 1) * stride + reach(window, i) - extents[i]);
    const auto smaller = total / 2;
    padding.begin[i] = window.auto_pad == AutoPad::same_upper ? smaller : total - smaller;
    padding.end[i] = total - padding.begin[i];
  }
  return padding;
}

Padding resolve_padding(const ConvTranspose& conv, const Ints& in, const Ints& out) {
  const Window& window = conv.window;
  const bool given = conv.output_shape.empty() && window.auto_pad == AutoPad::explicit_pads;
  Padding padding;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto unpadded =
        (in[i] - 1) * window.strides[i] + conv.output_padding[i] + reach(window, i);
    const auto total = unpadded - out[i];
    const auto smaller = std::max<std::int64_t>(total, 0) / 2;
    const auto larger = std::max<std::int64_t>(total, 0) - smaller;
    padding.begin.push_back(given                                    ? window.pads_begin[i]
                            : window.auto_pad == AutoPad::same_upper ? smaller
                                                                     : larger);
    padding.end.push_back(total - padding.begin[i]);
  }
  return padding;
}

namespace onnx_format {
namespace {

constexpr std::array<std::string_view, 4> kAutoPads = {"NOTSET", "SAME_UPPER", "SAME_LOWER",
                                                       "VALID"};

Result<AutoPad> auto_pad(const NodeReader& reader) {
  const auto found = std::ranges::find(kAutoPads, reader.text("auto_pad", kAutoPads[0]));
  if (found == kAutoPads.end()) return bad_attribute("auto_pad");
  return static_cast<AutoPad>(found - kAutoPads.begin());
}

}  // namespace

Result<Ints> per_dimension(const NodeReader& reader, std::string_view name, std::size_t spatial,
                           std::int64_t fallback, std::size_t times) {
  if (!reader.has(name)) return Ints(spatial * times, fallback);
  auto values = reader.ints(name);
  if (values.size() != spatial * times) return bad_attribute(name);
  return values;
}

Result<Window> read_window(const NodeReader& reader, Ints kernel) {
  const auto spatial = kernel.size();
  Window result{.kernel = std::move(kernel)};
  FLEETFIT_ASSIGN(result.auto_pad, auto_pad(reader));
  auto strides = per_dimension(reader, "strides", spatial, 1);
  auto dilations = per_dimension(reader, "dilations", spatial, 1);
  auto pads = per_dimension(reader, "pads", spatial, 0, 2);
  FLEETFIT_TRY(strides);
  FLEETFIT_TRY(dilations);
  FLEETFIT_TRY(pads);
  result.strides = std::move(*strides);
  result.dilations = std::move(*dilations);
  if (result.auto_pad != AutoPad::explicit_pads) pads->assign(2 * spatial, 0);
  result.pads_begin.assign(pads->begin(), pads->begin() + static_cast<std::ptrdiff_t>(spatial));
  result.pads_end.assign(pads->begin() + static_cast<std::ptrdiff_t>(spatial), pads->end());
  result.ceil_mode = reader.integer("ceil_mode", 0) != 0;
  return result;
}

void write_window(const Window& window, NodeWriter& out) {
  out.set("kernel_shape", window.kernel);
  out.set("strides", window.strides);
  if (window.auto_pad == AutoPad::explicit_pads) {
    Ints pads = window.pads_begin;
    pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
    out.set("pads", pads);
  } else {
    out.set("auto_pad", kAutoPads[static_cast<std::size_t>(window.auto_pad)]);
  }
}

}  // namespace onnx_format
}  // namespace fleetfit::graph
