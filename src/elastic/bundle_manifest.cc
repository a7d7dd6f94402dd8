#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "elastic/bundle_format.h"
#include "fleetfit/core/json.h"

namespace fleetfit::elastic {
namespace {

using core::JsonView;
using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "fleetfit-bundle";
constexpr std::string_view kOpen = "N";  // the extent that stands for the batch

// Far beyond what real bundles have; they keep a manifest of few bytes from asking for much.
constexpr std::size_t kMostModels = 64;
constexpr std::size_t kMostBlocks = 4096;
constexpr std::size_t kMostBranches = 64;
constexpr std::size_t kMostSections = 65536;
constexpr std::size_t kMostTensors = 256;
constexpr std::size_t kMostDimensions = 16;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 32;
constexpr double kMostBytes = static_cast<double>(std::int64_t{1} << 46);
constexpr std::size_t kMostSamples = 100'000;

Json write_shape(const TensorEntry& tensor) {
  Json shape = Json::array();
  for (const auto extent : tensor.shape)
    shape.push_back(extent == kBatch ? Json(kOpen) : Json(extent));
  return shape;
}

Result<std::int64_t> read_extent(const JsonView& view) {
  if (view.value().is_string() && view.value() == kOpen) return kBatch;
  return view.as_integer({.min = 1, .max = kMostExtent});
}

Status read_shape(const JsonView& view, TensorEntry& tensor) {
  FLEETFIT_ASSIGN(const auto items, view.items());
  if (items.size() > kMostDimensions)
    return view.error(fmt::format("has more than {} elements", kMostDimensions));
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(const auto extent, read_extent(item));
    if (extent == kBatch && !tensor.shape.empty())
      return view.error("only the first extent can be open");
    tensor.shape.push_back(extent);
  }
  return {};
}

/// Each section begins on the first page after the one before, so that they neither overlap nor
/// hide anything between them.
Status check_layout(const JsonView& view, const std::vector<BundleSection>& sections) {
  std::uint64_t end = 0;
  for (const auto& section : sections) {
    if (section.offset != page_after(end)) {
      return view.error(
          fmt::format("section '{}' begins at {}, where {} is the first page after the one before",
                      section.name, section.offset, page_after(end)));
    }
    end = section.offset + section.bytes;
  }
  return {};
}

Status check_sections_of(const ModelEntry& model, std::size_t sections) {
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const auto& branches = model.blocks[b].branches;
    const auto unknown = std::ranges::find_if(
        branches, [&](const BranchEntry& branch) { return branch.section >= sections; });
    if (unknown != branches.end()) {
      return refuse(fmt::format("blocks[{}].branches[{}]: there is no section {}", b,
                                unknown - branches.begin(), unknown->section));
    }
  }
  return {};
}

Status check_sections(const JsonView& view, const Manifest& manifest) {
  for (std::size_t m = 0; m < manifest.models.size(); ++m) {
    const auto checked = check_sections_of(manifest.models[m], manifest.sections.size());
    if (!checked) return view.error(fmt::format("models[{}].{}", m, checked.error().message));
  }
  return {};
}

}  // namespace

core::Fields fields_of(const AccuracySample*) {
  static constexpr core::Field kAll[] = {
      core::field<&AccuracySample::subnet>("subnet"),
      core::field<&AccuracySample::accuracy>("accuracy").between(0, 1),
      core::field<&AccuracySample::mac_share>("mac_share").from(0),
      core::field<&AccuracySample::mean_iou>("mean_iou").between(0, 1).omit_default()};
  return {.all = kAll};
}

core::Fields fields_of(const BundleInfo*) {
  static constexpr core::Field kAll[] = {
      core::field<&BundleInfo::created_by>("created_by"),
      core::field<&BundleInfo::created>("created"),
      core::field<&BundleInfo::data>("data"),
      core::field<&BundleInfo::classes>("classes"),
      core::field<&BundleInfo::samples>("samples").at_most(kMostSamples),
      core::field<&BundleInfo::model_bytes>("model_bytes").from(0)};
  return {.all = kAll};
}

core::Fields fields_of(const BundleSection*) {
  static constexpr core::Field kAll[] = {
      core::field<&BundleSection::name>("name"),
      core::field<&BundleSection::offset>("offset").up_to(kMostBytes),
      core::field<&BundleSection::bytes>("bytes").up_to(kMostBytes),
      core::field<&BundleSection::sha256>("sha256").hash()};
  return {.all = kAll};
}

core::Fields fields_of(const TensorEntry*) {
  static constexpr core::Field kAll[] = {
      core::field<&TensorEntry::name>("name"), core::field<&TensorEntry::type>("type"),
      core::field_by<TensorEntry, read_shape, write_shape>("shape")};
  return {.all = kAll};
}

core::Fields fields_of(const BranchEntry*) {
  static constexpr core::Field kAll[] = {
      core::field<&BranchEntry::kind>("kind"),
      core::field<&BranchEntry::span>("span").between(1, kMostBlocks),
      core::field<&BranchEntry::share>("share").above(0).up_to(1),
      core::field<&BranchEntry::section>("section"),
      core::field<&BranchEntry::inputs>("inputs").at_most(kMostTensors),
      core::field<&BranchEntry::outputs>("outputs").at_most(kMostTensors),
      core::field<&BranchEntry::macs>("macs").from(0),
      core::field<&BranchEntry::params>("params").from(0),
      core::field<&BranchEntry::weight_bytes>("weight_bytes").from(0)};
  return {.all = kAll};
}

core::Fields fields_of(const BlockEntry*) {
  static constexpr core::Field kAll[] = {
      core::field<&BlockEntry::name>("name"),
      core::field<&BlockEntry::branches>("branches").at_most(kMostBranches)};
  return {.all = kAll};
}

core::Fields fields_of(const ModelEntry*) {
  static constexpr core::Field kAll[] = {
      core::field<&ModelEntry::name>("name"),
      core::field<&ModelEntry::blocks>("blocks").at_most(kMostBlocks)};
  return {.all = kAll};
}

core::Fields fields_of(const Manifest*) {
  static constexpr core::Field kAll[] = {
      core::field<&Manifest::info>("info").inlined(),
      core::field<&Manifest::sections>("sections").at_most(kMostSections),
      core::field<&Manifest::models>("models").at_most(kMostModels)};
  return {.all = kAll};
}

std::string format_manifest(const Manifest& manifest) {
  auto json = core::to_json<nlohmann::json>(manifest);
  json["format"] = kFormat;
  json["version"] = kBundleVersion;
  return core::format_json_line(json);
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view name) {
  FLEETFIT_ASSIGN(const auto json, core::parse_json(text, name));
  const JsonView view(json, std::string(name));
  if (const auto format = view.text("format"); !format || *format != kFormat)
    return view.error("it is no manifest of a bundle");
  if (const auto version = view.integer("version"); !version || *version != kBundleVersion)
    return view.error("its version is not that of the header");
  FLEETFIT_ASSIGN(auto manifest, core::read<Manifest>(view));
  FLEETFIT_TRY(check_layout(view, manifest.sections));
  FLEETFIT_TRY(check_sections(view, manifest));
  return manifest;
}

}  // namespace fleetfit::elastic
