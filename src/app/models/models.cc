#include "fleetfit/app/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/models/model_files.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/cost/cost.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

TensorSummary summarize(const graph::Tensor& tensor) {
  TensorSummary summary{.name = tensor.name,
                        .shape = tensor.shape,
                        .dtype = std::string(to_string(tensor.dtype)),
                        .symbols = tensor.symbols,
                        .scale = {},
                        .zero_point = {}};
  if (tensor.quantization && !tensor.quantization->axis) {
    summary.scale = tensor.quantization->scales[0];
    summary.zero_point = tensor.quantization->zero_points[0];
  }
  return summary;
}

OperatorSummary summarize(const graph::Graph& graph, const graph::Node& node,
                          const std::optional<cost::NodeCost>& cost) {
  OperatorSummary summary{.name = node.name,
                          .type = std::string(type_name(node.op)),
                          .activation = std::string(graph::type_name(node.activation.kind))};
  if (cost) {
    summary.flops = cost->flops;
    summary.params = cost->params;
    summary.input_bytes = cost->input_bytes;
    summary.output_bytes = cost->output_bytes;
    summary.weight_bytes = cost->weight_bytes;
  }
  if (!node.outputs.empty() && node.outputs[0] != graph::kNoTensor)
    summary.output_shape = graph.tensor(node.outputs[0]).shape;
  return summary;
}

/// Why nothing here can run a node; nothing if it can be run.
std::optional<std::string> why_unsupported(const graph::Graph& graph, const graph::Node& node,
                                           const std::optional<cost::NodeCost>& cost) {
  if (const auto* unknown = std::get_if<graph::Unknown>(&node.op)) return unknown->reason;
  if (!cost) return "the shape of a tensor cannot be told before the network runs";
  auto why = engine::why_not_runnable(graph, node);
  return why.empty() ? std::nullopt : std::optional(std::move(why));
}

Result<std::uintmax_t> size_of_file(const std::filesystem::path& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", file.string(), error.message()));
  return bytes;
}

graph::ZooOptions zoo_options(const ZooRequest& request) {
  return {.width = request.width,
          .classes = request.classes,
          .image = request.image,
          .channels = request.channels,
          .seed = request.seed};
}

}  // namespace

Result<ModelSummary> inspect_model(const std::filesystem::path& file, const ModelOptions& options) {
  FLEETFIT_ASSIGN(const auto model, graph::import_model(file, import_options(options)));
  const auto& graph = model.graph;
  FLEETFIT_ASSIGN(const auto cost, core::within(file.string(), cost::count_cost(graph)));
  const auto peak = cost::peak_activation_memory(graph);

  ModelSummary summary{.format = std::string(to_string(model.format))};
  for (const auto id : graph.inputs) summary.inputs.push_back(summarize(graph.tensor(id)));
  for (const auto id : graph.outputs) summary.outputs.push_back(summarize(graph.tensor(id)));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    summary.ops.push_back(summarize(graph, node, cost.nodes[n]));
    if (auto why = why_unsupported(graph, node, cost.nodes[n])) {
      summary.unsupported.push_back({node.name, std::string(type_name(node.op)), std::move(*why)});
    }
  }
  summary.totals = {.flops = cost.total.flops,
                    .params = cost.total.params,
                    .weight_bytes = cost.total.weight_bytes,
                    .peak_activation_bytes = peak.bytes,
                    .peak_is_least = peak.is_least};
  for (const auto& a : model.assumed) summary.assumed.push_back({a.input, a.name, a.extent});
  return summary;
}

Result<ConvertSummary> convert_model(const std::filesystem::path& in,
                                     const std::filesystem::path& out,
                                     const ConvertOptions& options) {
  FLEETFIT_ASSIGN(auto model, graph::import_model(in, import_options(options.model)));
  ConvertSummary summary{.output = out.string(), .ops_before = model.graph.nodes.size()};
  if (options.simplify) {
    if (auto ok = graph::simplify(model.graph, {.without = options.without}); !ok)
      return core::within(in.string(), ok.error());
  }
  summary.ops_after = model.graph.nodes.size();
  if (auto ok = graph::export_onnx_file(model.graph, out); !ok)
    return core::within(in.string(), ok.error());
  FLEETFIT_ASSIGN(summary.bytes, size_of_file(out));
  return summary;
}

std::vector<PassSummary> list_passes() {
  std::vector<PassSummary> list;
  for (const auto& pass : graph::passes())
    list.push_back({std::string(pass.name), std::string(pass.summary)});
  return list;
}

Result<ZooSummary> show_zoo_network(std::string_view name, const ZooRequest& request) {
  FLEETFIT_ASSIGN(const auto graph, graph::build_zoo_network(name, zoo_options(request)));
  FLEETFIT_ASSIGN(const auto cost, core::within(name, cost::count_cost(graph)));
  const auto entry = std::ranges::find(graph::zoo(), name, &graph::ZooEntry::name);
  return ZooSummary{.name = std::string(name),
                    .family = entry->family,
                    .flops = cost.total.flops,
                    .params = cost.total.params,
                    .input = *graph.tensor(graph.inputs[0]).shape};
}

Result<std::vector<ZooSummary>> list_zoo(int threads) {
  const auto& zoo = graph::zoo();
  std::vector<Result<ZooSummary>> results(zoo.size(), ZooSummary{});
  core::ThreadPool pool(threads);
  pool.parallel_for(zoo.size(),
                    [&](std::size_t i) { results[i] = show_zoo_network(zoo[i].name, {}); });
  std::vector<ZooSummary> list;
  for (auto& result : results) {
    FLEETFIT_TRY(result);
    list.push_back(std::move(*result));
  }
  return list;
}

Result<WrittenModel> write_zoo_network(std::string_view name, const std::filesystem::path& file,
                                       const ZooRequest& request) {
  FLEETFIT_ASSIGN(const auto graph, graph::build_zoo_network(name, zoo_options(request)));
  FLEETFIT_TRY(graph::export_onnx_file(graph, file));
  FLEETFIT_ASSIGN(const auto bytes, size_of_file(file));
  return WrittenModel{std::string(name), file.string(), bytes};
}

Result<std::vector<WrittenModel>> write_zoo(const std::filesystem::path& folder,
                                            const ZooRequest& request, core::Progress& progress) {
  FLEETFIT_TRY(core::create_folder(folder));
  core::ProgressTask task(progress,
                          {.name = "zoo", .total = graph::zoo().size(), .unit = "networks"});
  std::vector<WrittenModel> written;
  for (const auto& entry : graph::zoo()) {
    FLEETFIT_ASSIGN(auto model,
                    write_zoo_network(entry.name, folder / (entry.name + ".onnx"), request));
    written.push_back(std::move(model));
    task.advance();
  }
  return written;
}

core::Fields fields_of(const TensorSummary*) {
  using Tensor = TensorSummary;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Tensor, name, shape, dtype),
      core::computed("symbols",
                     [](const Tensor& tensor) {
                       Json symbols;
                       for (const auto& symbol : tensor.symbols)
                         symbols.push_back(symbol.empty() ? Json() : Json(symbol));
                       return symbols;
                     })
          .omit_default(),
      core::computed("quantization", [](const Tensor& tensor) {
        if (!tensor.scale) return Json();
        return Json{{"scale", *tensor.scale}, {"zero_point", *tensor.zero_point}};
      }).omit_default()};
  return {.all = kAll};
}

core::Fields fields_of(const OperatorSummary*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(OperatorSummary, name, type, flops, params, input_bytes, output_bytes,
                       weight_bytes, output_shape),
      core::field<&OperatorSummary::activation>("activation").omit_default()};
  return {.all = kAll};
}

FLEETFIT_REPORT(UnsupportedOperator, name, type, why)
FLEETFIT_REPORT(AssumedExtent, input, dimension, extent)
FLEETFIT_REPORT(ModelTotals, flops, params, weight_bytes, peak_activation_bytes, peak_is_least)
FLEETFIT_REPORT(ModelSummary, format, inputs, outputs, ops, totals, unsupported, assumed)
FLEETFIT_REPORT(ConvertSummary, output, ops_before, ops_after, bytes)
FLEETFIT_REPORT(ZooSummary, name, family, flops, params, input)
FLEETFIT_REPORT(WrittenModel, name, file, bytes)

}  // namespace fleetfit::app
