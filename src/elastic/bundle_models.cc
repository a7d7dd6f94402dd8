#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "elastic/bundle_format.h"
#include "fleetfit/graph/import.h"

namespace fleetfit::elastic {
namespace {

using graph::Graph;

/// Compares inputs or outputs of a section with what the manifest says of them.
Status check_tensors(const Graph& graph, const std::vector<graph::TensorId>& ids,
                     const std::vector<TensorEntry>& entries, std::int64_t batch) {
  if (ids.size() != entries.size())
    return refuse("the manifest names another number of inputs or outputs");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& tensor = graph.tensor(ids[i]);
    auto shape = entries[i].shape;
    if (!shape.empty() && shape.front() == kBatch) shape.front() = batch;
    if (tensor.shape != shape || to_string(tensor.dtype) != entries[i].type)
      return refuse(
          fmt::format("'{}' is not of the type and shape that the manifest says", entries[i].name));
  }
  return {};
}

Status check_branch(const Graph& graph, const BranchEntry& entry, std::int64_t batch) {
  FLEETFIT_TRY(check_tensors(graph, graph.inputs, entry.inputs, batch));
  return check_tensors(graph, graph.outputs, entry.outputs, batch);
}

/// A model whose batch is fixed can be read with that one alone.
Status check_batch(const ModelEntry& model, std::int64_t batch) {
  if (model.blocks.empty() || model.blocks.front().branches.empty()) return {};
  for (const auto& input : model.blocks.front().branches.front().inputs) {
    if (input.shape.empty() || input.shape.front() == kBatch || input.shape.front() == batch)
      continue;
    return fail(ErrorCode::unsupported, fmt::format("model {} takes {} at a time, not {}",
                                                    model.name, input.shape.front(), batch));
  }
  return {};
}

/// Imports each section once, however many branches use it.
class SectionReader {
 public:
  SectionReader(const Manifest& manifest, const SectionSource& source, std::int64_t batch)
      : manifest_(manifest), source_(source), batch_(batch), graphs_(manifest.sections.size()) {}

  Result<Branch> read(const BranchEntry& entry) {
    const auto place = fmt::format("section '{}'", manifest_.sections[entry.section].name);
    FLEETFIT_ASSIGN(const auto graph, core::within(place, find(entry.section)));
    if (auto ok = check_branch(*graph, entry, batch_); !ok) return core::within(place, ok.error());
    return Branch{.kind = entry.kind, .span = entry.span, .share = entry.share, .graph = *graph};
  }

 private:
  Result<const Graph*> find(std::size_t section) {
    auto& graph = graphs_[section];
    if (graph) return &*graph;
    const auto bytes = source_.sections[section];
    auto model = graph::import_embedded_onnx(bytes, source_.file, {.batch = batch_});
    if (source_.file) source_.file->release(bytes);
    FLEETFIT_TRY(model);
    graph = std::move(model->graph);
    return &*graph;
  }

  const Manifest& manifest_;
  const SectionSource& source_;
  std::int64_t batch_;
  std::vector<std::optional<Graph>> graphs_;
};

Result<Supernet> read_model(const ModelEntry& entry, SectionReader& sections) {
  Supernet model{.name = entry.name};
  for (const auto& block : entry.blocks) {
    model.blocks.push_back({.name = block.name});
    for (const auto& branch_entry : block.branches) {
      FLEETFIT_ASSIGN(auto branch, sections.read(branch_entry));
      model.blocks.back().branches.push_back(std::move(branch));
    }
  }
  return model;
}

bool are_known(const Graph& graph, const std::vector<graph::TensorId>& ids) {
  return !ids.empty() && std::ranges::all_of(ids, [&](graph::TensorId id) {
    return graph.tensor(id).shape && size_of(graph.tensor(id).dtype) > 0;
  });
}

/// The manifest says type and shape of what enters and leaves each branch.
Status check_ends(const Supernet& model) {
  for (const auto& block : model.blocks) {
    for (const auto& [kind, span, share, graph] : block.branches) {
      if (!are_known(graph, graph.inputs) || !are_known(graph, graph.outputs))
        return refuse(fmt::format("type or shape of what enters or leaves block {} is not known",
                                  block.name));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Supernet>> read_models(const Manifest& manifest, const SectionSource& source,
                                          std::int64_t batch) {
  SectionReader sections(manifest, source, batch);
  std::vector<Supernet> models;
  for (const auto& entry : manifest.models) {
    FLEETFIT_TRY(check_batch(entry, batch));
    FLEETFIT_ASSIGN(auto model, read_model(entry, sections));
    models.push_back(std::move(model));
  }
  FLEETFIT_TRY(check_models(models, manifest.info));
  return models;
}

Status check_models(const std::vector<Supernet>& models, const BundleInfo& info) {
  FLEETFIT_TRY(check_supernets(models));
  for (const auto& model : models) {
    // It stands between a model and its branches in the texts of subnets.
    if (models.size() > 1 && model.name.find(':') != std::string::npos)
      return refuse(
          fmt::format("of several models, none can be called '{}', with a colon", model.name));
    if (auto ok = check_ends(model); !ok)
      return core::within(fmt::format("model {}", model.name), ok.error());
  }
  const SubnetSpace space(models);
  for (const auto& sample : info.samples) {
    if (const auto design = space.parse(sample.subnet); !design)
      return core::within(fmt::format("sample '{}'", sample.subnet), design.error());
  }
  return {};
}

}  // namespace fleetfit::elastic
