#include <fmt/format.h>

#include <array>
#include <map>

#include "fleetfit/graph/import.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/ncnn/layers.h"

namespace fleetfit::graph {
namespace ncnn {
namespace {

using Table = std::map<std::string_view, const LayerType*>;

Table layer_table() {
  Table table;
  for (const auto group :
       {convolution_layers(), matrix_layers(), normalization_layers(), activation_layers(),
        arithmetic_layers(), image_layers(), moving_layers(), source_layers()}) {
    for (const auto& type : group) table[type.name] = &type;
  }
  return table;
}

Status convert(GraphWriter& writer, const Table& table, Layer& layer) {
  Conversion conversion(writer, layer);
  const auto found = table.find(layer.type);
  if (found == table.end()) {
    conversion.unknown("no such layer is known");
  } else {
    found->second->convert(conversion);
  }
  // A wrong parameter is the cause of what went wrong after it.
  const auto& status = layer.params.status() ? writer.status() : layer.params.status();
  if (!status) return core::within(place(layer), status.error());
  return {};
}

Status convert_all(GraphWriter& writer, std::vector<Layer>& layers) {
  const auto table = layer_table();
  const auto channels = channels_of_inputs(layers);
  for (auto& layer : layers) {
    auto status =
        layer.type == "Input" ? add_input(writer, layer, channels) : convert(writer, table, layer);
    if (!status) return status;
  }
  return {};
}

/// What a wrong guess of open dimensions looks like to the user.
Error with_hint(Error error, const std::vector<AssumedDimension>& assumed) {
  if (assumed.empty()) return error;
  error.message += "; the file leaves the input's size open, and it may be another: set it with";
  for (const auto& dimension : assumed)
    error.message += fmt::format(" --dim {}=… (now {})", dimension.name, dimension.extent);
  return error;
}

Status finish(GraphWriter& writer) {
  auto& graph = writer.graph();
  writer.finish_outputs();
  FLEETFIT_TRY(sort_nodes(graph));
  FLEETFIT_TRY(validate(graph));
  return infer_shapes(graph);
}

}  // namespace
}  // namespace ncnn

Result<ImportedModel> import_ncnn(std::string_view text, const ImportOptions& options) {
  // Text graphs have some ten thousand characters.
  constexpr std::size_t kMostCharacters = 64 << 20;
  if (text.size() > kMostCharacters) {
    return refuse(fmt::format("{} characters are no text graph", text.size()));
  }
  FLEETFIT_ASSIGN(auto layers, ncnn::parse_param_text(text));
  ncnn::GraphWriter writer(options);
  auto status = ncnn::convert_all(writer, layers);
  if (status) status = ncnn::finish(writer);
  if (!status) return tl::unexpected(ncnn::with_hint(status.error(), writer.assumed()));
  return ImportedModel{.graph = std::move(writer.graph()),
                       .format = ModelFormat::ncnn,
                       .assumed = std::move(writer.assumed())};
}

}  // namespace fleetfit::graph
