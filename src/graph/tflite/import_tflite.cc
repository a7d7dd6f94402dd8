#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/graph/import.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/tflite/parts.h"

namespace fleetfit::graph {
namespace {

namespace file = tflite::file;

// Far more than any real network has, and few enough to be read in no time.
constexpr flatbuffers::uoffset_t kMostTables = 1'000'000;
constexpr flatbuffers::uoffset_t kMostParts = 100'000;
constexpr flatbuffers::uoffset_t kMostInputs = 1'000;
constexpr flatbuffers::uoffset_t kDeepest = 16;
constexpr std::size_t kAlignment = 16;
constexpr std::uint32_t kVersion = 3;

template <class T>
flatbuffers::uoffset_t size_of_list(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? 0 : list->size();
}

/// The model in the bytes if all of its offsets stay inside of them.
Result<const file::Model*> verified(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  // The lists of a file over 2 GB may still be read, but nothing here could hold its data.
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return fail(ErrorCode::unsupported, "a TFLite file of 2 GB and more is not read");
  flatbuffers::Verifier verifier(data, bytes.size(), kDeepest, kMostTables);
  if (!file::VerifyModelBuffer(verifier)) return refuse("not a TFLite file, or damaged");
  const auto* model = file::GetModel(data);
  if (model->version() != kVersion) {
    return fail(ErrorCode::unsupported,
                fmt::format("TFLite schema version {} is not {}", model->version(), kVersion));
  }
  if (size_of_list(model->subgraphs()) == 0) return refuse("the TFLite file holds no graph");
  const auto* subgraph = model->subgraphs()->Get(0);
  for (const auto count : {size_of_list(subgraph->tensors()), size_of_list(subgraph->operators()),
                           size_of_list(model->operator_codes())}) {
    if (count > kMostParts) return refuse(fmt::format("the graph has {} parts of a kind", count));
  }
  if (size_of_list(subgraph->inputs()) > kMostInputs)
    return refuse("the graph has too many inputs");
  return model;
}

/// A tensor without elements needs no data: files leave it out.
void make_empty_tensors_constant(Graph& graph) {
  const auto made_by = producers(graph);
  std::vector<bool> given(graph.tensors.size());
  for (const auto id : graph.inputs) given[static_cast<std::size_t>(id)] = true;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    auto& tensor = graph.tensors[t];
    if (made_by[t] >= 0 || given[t] || tensor.data || size_of(tensor.dtype) == 0) continue;
    if (tensor.shape && elements(*tensor.shape) == 0) tensor.data = TensorData::own({});
  }
}

Status read_outputs(const file::SubGraph& subgraph, Graph& graph) {
  if (subgraph.outputs() == nullptr) return {};
  for (const auto id : *subgraph.outputs()) {
    if (id < 0 || static_cast<std::size_t>(id) >= graph.tensors.size()) {
      return refuse(fmt::format("output {} of the graph is no tensor", id));
    }
    graph.outputs.push_back(id);
  }
  return {};
}

Result<ImportedModel> read_model(std::span<const std::byte> bytes, const ImportOptions& options) {
  FLEETFIT_ASSIGN(const auto file, verified(bytes));
  const auto& subgraph = *file->subgraphs()->Get(0);
  tflite::CopyBudget budget(bytes.size());

  ImportedModel model{.format = ModelFormat::tflite};
  auto& graph = model.graph;
  if (const auto* name = subgraph.name()) graph.name = name->str();
  Status status = tflite::read_tensors(*file, options, budget, model);
  if (status) status = read_outputs(subgraph, graph);
  if (status) status = tflite::read_operators(*file, budget, graph);
  if (status) {
    make_empty_tensors_constant(graph);
    status = sort_nodes(graph);
  }
  if (status) status = validate(graph);
  if (status) status = infer_shapes(graph);
  FLEETFIT_TRY(status);
  return model;
}

}  // namespace

Result<ImportedModel> import_tflite(std::span<const std::byte> bytes,
                                    const ImportOptions& options) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0)
    return read_model(bytes, options);
  const std::vector<std::byte> aligned(bytes.begin(), bytes.end());
  return read_model(aligned, options);
}

}  // namespace fleetfit::graph
