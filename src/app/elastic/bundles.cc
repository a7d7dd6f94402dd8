#include "fleetfit/app/bundles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "fleetfit/core/report_fields.h"
#include "fleetfit/core/version.h"
#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"

namespace fleetfit::app {
namespace {

namespace fs = std::filesystem;
using elastic::BranchId;
using elastic::Bundle;
using elastic::SubnetSpace;
using elastic::Supernet;

std::vector<std::int64_t> shape_of(const graph::Graph& graph, graph::TensorId id) {
  return graph.tensor(id).shape.value_or(graph::Shape{});
}

Result<BranchSummary> summarize(const elastic::Block& block, std::size_t index) {
  const auto& branch = block.branches[index];
  FLEETFIT_ASSIGN(const auto cost, cost::count_cost(branch.graph));
  return BranchSummary{.code = elastic::branch_code(block, index),
                       .kind = branch.kind,
                       .span = branch.span,
                       .share = branch.share,
                       .macs = cost.total.flops / 2,
                       .params = cost.total.params,
                       .weight_bytes = cost.total.weight_bytes};
}

Result<BlockSummary> summarize(const elastic::Block& block) {
  const auto& original = block.branches.front().graph;
  BlockSummary summary{.name = block.name,
                       .input = shape_of(original, original.inputs.front()),
                       .output = shape_of(original, original.outputs.front())};
  for (std::size_t i = 0; i < block.branches.size(); ++i) {
    FLEETFIT_ASSIGN(auto branch, core::within(block.name, summarize(block, i)));
    summary.branches.push_back(std::move(branch));
  }
  return summary;
}

Result<ElasticModelSummary> summarize(const Supernet& model) {
  ElasticModelSummary summary{.name = model.name};
  for (const auto& block : model.blocks) {
    FLEETFIT_ASSIGN(auto added, summarize(block));
    summary.macs += added.branches.front().macs;
    summary.params += added.branches.front().params;
    summary.blocks.push_back(std::move(added));
  }
  return summary;
}

Result<std::vector<space::Choice>> find_subnet(const SubnetSpace& space,
                                               const std::optional<std::string>& text) {
  if (!text) return space.original();
  auto design = space.parse(*text);
  if (!design) return core::within(fmt::format("subnet '{}'", *text), design.error());
  return design;
}

std::uintmax_t size_of_file(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  return error ? 0 : bytes;
}

Result<WrittenBundle> write(const Bundle& bundle, const fs::path& file) {
  FLEETFIT_TRY(elastic::write_bundle(bundle, file));
  const auto subnets = SubnetSpace(bundle.models).size();
  WrittenBundle written{.file = file.string(),
                        .bytes = size_of_file(file),
                        .models = bundle.models.size(),
                        .subnets = subnets.decimal(),
                        .subnets_approximate = subnets.approximate()};
  for (const auto& model : bundle.models) {
    written.blocks += model.blocks.size();
    for (const auto& block : model.blocks) written.branches += block.branches.size();
  }
  return written;
}

std::int64_t milliseconds_since_1970(const core::Clock& clock) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock.date().time_since_epoch())
      .count();
}

// --- Joining ---

/// The same subnet's text in a space whose model `first` is the other space's first.
Result<std::string> text_in(const SubnetSpace& joined, std::size_t first, const SubnetSpace& space,
                            const std::string& text) {
  FLEETFIT_ASSIGN(const auto design, space.parse(text));
  const auto path = space.path(design);
  auto translated = joined.original(first + path.front().model);
  for (const auto& [model, block, branch] : path) {
    const auto gene = joined.gene_of(first + model, block);
    if (gene) translated[*gene] = static_cast<space::Choice>(branch);
  }
  return joined.format(translated);
}

Status add_samples(const Bundle& from, std::size_t first, const SubnetSpace& joined,
                   Bundle& bundle) {
  const SubnetSpace space(from.models);
  for (auto sample : from.info.samples) {
    FLEETFIT_ASSIGN(auto text, text_in(joined, first, space, sample.subnet));
    sample.subnet = std::move(text);
    bundle.info.samples.push_back(std::move(sample));
  }
  return {};
}

Status add_info(const elastic::BundleInfo& from, const std::string& name,
                elastic::BundleInfo& info) {
  if (info.classes.empty()) info.classes = from.classes;
  if (!from.classes.empty() && from.classes != info.classes)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: it tells other classes apart than the bundles before", name));
  info.created = std::max(info.created, from.created);
  info.model_bytes += from.model_bytes;
  return {};
}

}  // namespace

core::Fields fields_of(const BranchSummary*) {
  static constexpr core::Field kAll[] = {
      core::field<&BranchSummary::code>("branch"),
      FLEETFIT_MEMBERS(BranchSummary, kind, span, share, macs, params, weight_bytes)};
  return {.all = kAll};
}

FLEETFIT_REPORT(BlockSummary, name, input, output, branches)
FLEETFIT_REPORT(ElasticModelSummary, name, macs, params, blocks)

core::Fields fields_of(const BundleSummary*) {
  using Summary = BundleSummary;
  using elastic::BundleCheck;
  using elastic::BundleInfo;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Summary, file),
      core::field<&Summary::check, &BundleCheck::version>("version"),
      core::field<&Summary::check, &BundleCheck::bytes>("bytes"),
      core::field<&Summary::info, &BundleInfo::model_bytes>("model_bytes"),
      core::field<&Summary::check, &BundleCheck::signature>("signature"),
      FLEETFIT_MEMBERS(Summary, manifest_sha256),
      core::field<&Summary::info, &BundleInfo::created_by>("created_by"),
      core::field<&Summary::info, &BundleInfo::created>("created"),
      core::field<&Summary::info, &BundleInfo::data>("data"),
      core::field<&Summary::info, &BundleInfo::classes>("classes"),
      core::field<&Summary::subnets_approximate>("subnets"),
      core::field<&Summary::subnets>("subnets_exact"),
      FLEETFIT_MEMBERS(Summary, original, models),
      core::field<&Summary::info, &BundleInfo::samples>("samples")};
  return {.all = kAll};
}

core::Fields fields_of(const VerifiedBundle*) {
  using elastic::BundleCheck;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(VerifiedBundle, file),
      core::field<&VerifiedBundle::check, &BundleCheck::version>("version"),
      core::field<&VerifiedBundle::check, &BundleCheck::bytes>("bytes"),
      core::field<&VerifiedBundle::check, &BundleCheck::signature>("signature"),
      core::field<&VerifiedBundle::check, &BundleCheck::sections>("sections")};
  return {.all = kAll};
}

FLEETFIT_REPORT(WrittenSubnet, subnet, file, bytes, macs, params)

core::Fields fields_of(const WrittenBundle*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(WrittenBundle, file), core::field<&WrittenBundle::bytes>("bundle_bytes"),
      FLEETFIT_MEMBERS(WrittenBundle, models, blocks, branches),
      core::field<&WrittenBundle::subnets_approximate>("subnets"),
      core::field<&WrittenBundle::subnets>("subnets_exact")};
  return {.all = kAll};
}

Result<BundleSummary> show_bundle(const fs::path& file) {
  FLEETFIT_ASSIGN(const auto bundle, elastic::read_bundle(file));
  FLEETFIT_ASSIGN(auto check, elastic::verify_bundle(file));
  const SubnetSpace space(bundle.models);
  BundleSummary summary{.file = file.string(),
                        .info = bundle.info,
                        .check = std::move(check),
                        .manifest_sha256 = bundle.manifest_sha256,
                        .subnets = space.size().decimal(),
                        .subnets_approximate = space.size().approximate(),
                        .original = space.format(space.original())};
  for (const auto& model : bundle.models) {
    FLEETFIT_ASSIGN(auto added, core::within(file.string(), summarize(model)));
    summary.models.push_back(std::move(added));
  }
  return summary;
}

Result<VerifiedBundle> verify_bundle(const fs::path& file,
                                     const std::optional<fs::path>& public_key) {
  FLEETFIT_ASSIGN(auto check, elastic::verify_bundle(file, {.public_key = public_key}));
  return VerifiedBundle{.file = file.string(), .check = std::move(check)};
}

Result<VerifiedBundle> sign_bundle(const fs::path& file, const fs::path& private_key) {
  FLEETFIT_TRY(elastic::sign_bundle(file, private_key));
  return verify_bundle(file, std::nullopt);
}

Result<WrittenSubnet> extract_subnet(const fs::path& bundle,
                                     const std::optional<std::string>& subnet,
                                     const fs::path& file) {
  FLEETFIT_ASSIGN(const auto read, elastic::read_bundle(bundle));
  const SubnetSpace space(read.models);
  FLEETFIT_ASSIGN(const auto design, core::within(bundle.string(), find_subnet(space, subnet)));
  FLEETFIT_ASSIGN(const auto graph, core::within(bundle.string(), space.lower(design)));
  FLEETFIT_ASSIGN(const auto cost, cost::count_cost(graph));
  FLEETFIT_TRY(graph::export_onnx_file(graph, file));
  return WrittenSubnet{.subnet = space.format(design),
                       .file = file.string(),
                       .bytes = size_of_file(file),
                       .macs = cost.total.flops / 2,
                       .params = cost.total.params};
}

Result<WrittenBundle> join_bundles(const std::vector<fs::path>& bundles, const fs::path& file) {
  std::vector<std::string> data;
  Bundle joined{.info = {.created_by = fmt::format("fleetfit {}", core::version())}};
  std::vector<Bundle> parts;
  for (const auto& path : bundles) {
    FLEETFIT_ASSIGN(auto part, elastic::read_bundle(path));
    FLEETFIT_TRY(add_info(part.info, path.string(), joined.info));
    if (std::ranges::find(data, part.info.data) == data.end()) data.push_back(part.info.data);
    joined.models.insert(joined.models.end(), part.models.begin(), part.models.end());
    parts.push_back(std::move(part));
  }
  if (auto ok = elastic::check_supernets(joined.models); !ok)
    return core::within(file.string(), ok.error());
  joined.info.data = fmt::format("{}", fmt::join(data, ", "));
  const SubnetSpace space(joined.models);
  std::size_t first = 0;
  for (const auto& part : parts) {
    FLEETFIT_TRY(add_samples(part, first, space, joined));
    first += part.models.size();
  }
  return write(joined, file);
}

Result<WrittenBundle> draft_bundle(const fs::path& model, const elastic::ExpandOptions& options,
                                   const core::Clock& clock, const fs::path& file) {
  FLEETFIT_ASSIGN(const auto imported, graph::import_model(model));
  FLEETFIT_ASSIGN(auto supernet,
                  core::within(model.string(), elastic::expand(imported.graph, options)));
  if (supernet.name.empty()) supernet.name = model.stem().string();
  Bundle bundle{.info = {.created_by = fmt::format("fleetfit {}", core::version()),
                         .created = milliseconds_since_1970(clock),
                         .model_bytes = static_cast<std::int64_t>(size_of_file(model))}};
  bundle.models.push_back(std::move(supernet));
  return write(bundle, file);
}

}  // namespace fleetfit::app
