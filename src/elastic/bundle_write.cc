#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "elastic/bundle_format.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::elastic {
namespace {

using graph::Graph;

const std::string kBatchName = "N";

bool has_extent(const Graph& graph, const std::vector<graph::TensorId>& ids, std::int64_t extent) {
  return std::ranges::all_of(ids, [&](graph::TensorId id) {
    const auto& shape = graph.tensor(id).shape;
    return shape && !shape->empty() && shape->front() == extent;
  });
}

/// Leaves the first dimension of all inputs open, at present 1, and fixes all others. False if the
/// outputs do not follow it, as with a shape that is written into the network.
bool open_batch(Graph& graph) {
  for (const auto id : graph.inputs) {
    auto& tensor = graph.tensor(id);
    if (!tensor.shape || tensor.shape->empty()) return false;
    tensor.symbols.assign(tensor.shape->size(), "");
    tensor.symbols.front() = kBatchName;
  }
  for (const std::int64_t extent : {2, 1}) {
    const auto bound = graph::bind_dimensions(graph, {{kBatchName, extent}});
    if (!bound || !has_extent(graph, graph.outputs, extent)) return false;
  }
  return true;
}

void fix_dimensions(Graph& graph) {
  for (const auto id : graph.inputs) graph.tensor(id).symbols.clear();
}

template <class Change>
bool change_graphs(Supernet& model, Change change) {
  for (auto& block : model.blocks) {
    for (auto& branch : block.branches) {
      if (!change(branch.graph)) return false;
    }
  }
  return true;
}

/// The model as it is written: of any batch if all of it can take that, else as it is.
Supernet with_open_batch(const Supernet& model) {
  Supernet open = model;
  if (change_graphs(open, open_batch)) return open;
  Supernet fixed = model;
  change_graphs(fixed, [](Graph& graph) {
    fix_dimensions(graph);
    return true;
  });
  return fixed;
}

std::vector<TensorEntry> describe(const Graph& graph, const std::vector<graph::TensorId>& ids) {
  const bool is_open = !graph.tensor(graph.inputs.front()).symbols.empty();
  std::vector<TensorEntry> entries;
  for (const auto id : ids) {
    const auto& tensor = graph.tensor(id);
    TensorEntry entry{
        .name = tensor.name, .type = std::string(to_string(tensor.dtype)), .shape = *tensor.shape};
    if (is_open) entry.shape.front() = kBatch;
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// Collects sections, equal ones once.
class Sections {
 public:
  std::size_t add(std::string name, std::string bytes) {
    auto hash = core::sha256_hex(bytes);
    const auto [known, is_new] = by_hash_.try_emplace(hash, list_.size());
    if (!is_new) return known->second;
    const auto offset = list_.empty() ? 0 : page_after(list_.back().offset + list_.back().bytes);
    list_.push_back({.name = std::move(name),
                     .offset = offset,
                     .bytes = bytes.size(),
                     .sha256 = std::move(hash)});
    contents_.push_back(std::move(bytes));
    return list_.size() - 1;
  }

  const std::vector<BundleSection>& list() const { return list_; }
  const std::vector<std::string>& contents() const { return contents_; }

 private:
  std::vector<BundleSection> list_;
  std::vector<std::string> contents_;
  std::map<std::string, std::size_t> by_hash_;
};

Result<BranchEntry> add_branch(const Branch& branch, std::string name, Sections& sections) {
  FLEETFIT_ASSIGN(auto bytes, core::within(name, graph::export_mappable_onnx(branch.graph)));
  FLEETFIT_ASSIGN(const auto cost, core::within(name, cost::count_cost(branch.graph)));
  return BranchEntry{.kind = branch.kind,
                     .span = branch.span,
                     .share = branch.share,
                     .section = sections.add(std::move(name), std::move(bytes)),
                     .inputs = describe(branch.graph, branch.graph.inputs),
                     .outputs = describe(branch.graph, branch.graph.outputs),
                     .macs = cost.total.flops / 2,
                     .params = cost.total.params,
                     .weight_bytes = cost.total.weight_bytes};
}

Result<ModelEntry> add_model(const Supernet& model, Sections& sections) {
  ModelEntry entry{.name = model.name};
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const auto& block = model.blocks[b];
    entry.blocks.push_back({.name = block.name});
    for (std::size_t i = 0; i < block.branches.size(); ++i) {
      FLEETFIT_ASSIGN(auto branch, add_branch(block.branches[i],
                                              fmt::format("{}/block {}/{}", model.name, b,
                                                          branch_code(block, i)),
                                              sections));
      entry.blocks.back().branches.push_back(std::move(branch));
    }
  }
  return entry;
}

Status write_parts(core::FileWriter& file, const Manifest& manifest,
                   const std::vector<std::string>& contents) {
  const auto text = format_manifest(manifest);
  std::uint64_t written = 0;
  const auto write = [&](std::string_view bytes) {
    written += bytes.size();
    return file.write(bytes);
  };
  const auto fill_page = [&] { return write(std::string(page_after(written) - written, '\0')); };
  const BundleHeader header{.manifest_bytes = text.size(),
                            .manifest_sha256 = core::sha256_hex(text)};
  FLEETFIT_TRY(write(format_header(header)));
  FLEETFIT_TRY(write(text));
  for (const auto& section : contents) {
    FLEETFIT_TRY(fill_page());
    FLEETFIT_TRY(write(section));
  }
  return {};
}

}  // namespace

Status write_bundle(const Bundle& bundle, const std::filesystem::path& file) {
  FLEETFIT_TRY(core::within(file.string(), check_models(bundle.models, bundle.info)));
  Manifest manifest{.info = bundle.info};
  Sections sections;
  for (const auto& model : bundle.models) {
    FLEETFIT_ASSIGN(auto entry,
                    core::within(file.string(), add_model(with_open_batch(model), sections)));
    manifest.models.push_back(std::move(entry));
  }
  manifest.sections = sections.list();
  FLEETFIT_ASSIGN(auto writer, core::FileWriter::open(file));
  FLEETFIT_TRY(write_parts(writer, manifest, sections.contents()));
  return writer.commit();
}

}  // namespace fleetfit::elastic
