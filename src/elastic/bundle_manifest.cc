#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "elastic/bundle_format.h"
#include "fleetfit/core/json.h"

namespace fleetfit::elastic {
namespace {

using core::JsonView;
using Json = nlohmann::json;

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
constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;
constexpr std::size_t kMostSamples = 100'000;
constexpr std::size_t kHashDigits = 64;

// --- Writing ---

Json tensors_json(const std::vector<TensorEntry>& tensors) {
  Json list = Json::array();
  for (const auto& tensor : tensors) {
    Json shape = Json::array();
    for (const auto extent : tensor.shape) {
      if (extent == kBatch) {
        shape.push_back(kOpen);
      } else {
        shape.push_back(extent);
      }
    }
    list.push_back({{"name", tensor.name}, {"type", tensor.type}, {"shape", std::move(shape)}});
  }
  return list;
}

Json branch_json(const BranchEntry& branch) {
  return {{"kind", to_string(branch.kind)},
          {"span", branch.span},
          {"share", branch.share},
          {"section", branch.section},
          {"inputs", tensors_json(branch.inputs)},
          {"outputs", tensors_json(branch.outputs)},
          {"macs", branch.macs},
          {"params", branch.params},
          {"weight_bytes", branch.weight_bytes}};
}

Json model_json(const ModelEntry& model) {
  Json blocks = Json::array();
  for (const auto& block : model.blocks) {
    Json branches = Json::array();
    for (const auto& branch : block.branches) branches.push_back(branch_json(branch));
    blocks.push_back({{"name", block.name}, {"branches", std::move(branches)}});
  }
  return {{"name", model.name}, {"blocks", std::move(blocks)}};
}

// --- Reading ---

/// Calls `read` with each item of a list; the first error ends it.
template <class T, class Read>
Result<std::vector<T>> read_list(const JsonView& object, std::string_view key, std::size_t most,
                                 Read read) {
  FLEETFIT_ASSIGN(const auto items, object.items(key));
  if (items.size() > most) {
    return object.error(fmt::format("{} has {} entries, the most are {}", key, items.size(), most));
  }
  std::vector<T> list;
  list.reserve(items.size());
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto value, read(item));
    list.push_back(std::move(value));
  }
  return list;
}

/// Fills a struct field by field and keeps the first error.
class Fields {
 public:
  template <class T, class To>
  void take(Result<T> value, To& into) {
    if (value) {
      into = static_cast<To>(std::move(*value));
    } else if (!error_) {
      error_ = std::move(value.error());
    }
  }

  /// A problem of the whole, looked for if all fields could be read.
  void refuse_if(bool wrong, const JsonView& view, std::string_view problem) {
    if (wrong && !error_) error_ = view.error(problem).value();
  }

  template <class T>
  Result<T> finish(T value) && {
    if (error_) return tl::unexpected(std::move(*error_));
    return value;
  }

 private:
  std::optional<Error> error_;
};

Result<std::int64_t> read_extent(const JsonView& view) {
  if (view.value().is_string() && view.value() == kOpen) return kBatch;
  return view.as_integer({.min = 1, .max = kMostExtent});
}

Result<TensorEntry> read_tensor(const JsonView& view) {
  TensorEntry tensor;
  Fields fields;
  fields.take(view.text("name"), tensor.name);
  fields.take(view.text("type"), tensor.type);
  fields.take(read_list<std::int64_t>(view, "shape", kMostDimensions, read_extent), tensor.shape);
  const auto rest = std::span(tensor.shape).subspan(tensor.shape.empty() ? 0 : 1);
  fields.refuse_if(std::ranges::count(rest, kBatch) > 0, view, "only the first extent can be open");
  return std::move(fields).finish(std::move(tensor));
}

Result<BranchKind> read_kind(const JsonView& view) {
  FLEETFIT_ASSIGN(const auto text, view.text("kind"));
  for (const auto kind : {BranchKind::original, BranchKind::shrunk, BranchKind::merged}) {
    if (to_string(kind) == text) return kind;
  }
  return view.error(fmt::format("the kind '{}' is none of original, shrunk, merged", text));
}

Result<BranchEntry> read_branch(const JsonView& view, std::size_t sections) {
  const core::IntegerRange count{.min = 0};
  const auto tensors = [&](std::string_view key) {
    return read_list<TensorEntry>(view, key, kMostTensors, read_tensor);
  };
  BranchEntry branch;
  Fields fields;
  fields.take(read_kind(view), branch.kind);
  fields.take(view.integer("span", {.min = 1, .max = kMostBlocks}), branch.span);
  fields.take(view.number("share"), branch.share);
  fields.take(view.integer("section", count), branch.section);
  fields.take(tensors("inputs"), branch.inputs);
  fields.take(tensors("outputs"), branch.outputs);
  fields.take(view.integer("macs", count), branch.macs);
  fields.take(view.integer("params", count), branch.params);
  fields.take(view.integer("weight_bytes", count), branch.weight_bytes);
  fields.refuse_if(!(branch.share > 0 && branch.share <= 1), view,
                   "share is above 0 and at most 1");
  fields.refuse_if(branch.section >= sections, view,
                   fmt::format("there is no section {}", branch.section));
  return std::move(fields).finish(std::move(branch));
}

Result<BlockEntry> read_block(const JsonView& view, std::size_t sections) {
  const auto branch = [&](const JsonView& item) { return read_branch(item, sections); };
  BlockEntry block;
  Fields fields;
  fields.take(view.text("name"), block.name);
  fields.take(read_list<BranchEntry>(view, "branches", kMostBranches, branch), block.branches);
  return std::move(fields).finish(std::move(block));
}

Result<ModelEntry> read_model(const JsonView& view, std::size_t sections) {
  const auto block = [&](const JsonView& item) { return read_block(item, sections); };
  ModelEntry model;
  Fields fields;
  fields.take(view.text("name"), model.name);
  fields.take(read_list<BlockEntry>(view, "blocks", kMostBlocks, block), model.blocks);
  return std::move(fields).finish(std::move(model));
}

bool is_hash(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kHashDigits && std::ranges::all_of(text, is_digit);
}

Result<BundleSection> read_section(const JsonView& view) {
  const core::IntegerRange range{.min = 0, .max = kMostBytes};
  BundleSection section;
  Fields fields;
  fields.take(view.text("name"), section.name);
  fields.take(view.integer("offset", range), section.offset);
  fields.take(view.integer("bytes", range), section.bytes);
  fields.take(view.text("sha256"), section.sha256);
  fields.refuse_if(!is_hash(section.sha256), view, "sha256 is not 64 small hexadecimal digits");
  return std::move(fields).finish(std::move(section));
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

Result<AccuracySample> read_sample(const JsonView& view) {
  AccuracySample sample;
  Fields fields;
  fields.take(view.text("subnet"), sample.subnet);
  fields.take(view.number("accuracy"), sample.accuracy);
  fields.take(view.number("mac_share"), sample.mac_share);
  fields.refuse_if(!(sample.accuracy >= 0 && sample.accuracy <= 1), view,
                   "accuracy is between 0 and 1");
  fields.refuse_if(!(sample.mac_share >= 0), view, "mac_share is not negative");
  std::optional<JsonView> iou;
  fields.take(view.find("mean_iou"), iou);
  if (iou) fields.take(iou->as_number(), sample.mean_iou.emplace());
  fields.refuse_if(sample.mean_iou && !(*sample.mean_iou >= 0 && *sample.mean_iou <= 1), view,
                   "mean_iou is between 0 and 1");
  return std::move(fields).finish(std::move(sample));
}

Result<BundleInfo> read_info(const JsonView& view) {
  BundleInfo info;
  Fields fields;
  fields.take(view.text("created_by"), info.created_by);
  fields.take(view.integer("created"), info.created);
  fields.take(view.text("data"), info.data);
  fields.take(view.texts("classes"), info.classes);
  fields.take(read_list<AccuracySample>(view, "samples", kMostSamples, read_sample), info.samples);
  fields.take(view.integer("model_bytes", {.min = 0}), info.model_bytes);
  return std::move(fields).finish(std::move(info));
}

}  // namespace

std::string format_manifest(const Manifest& manifest) {
  const auto& info = manifest.info;
  Json samples = Json::array();
  for (const auto& s : info.samples) {
    samples.push_back({{"subnet", s.subnet}, {"accuracy", s.accuracy}, {"mac_share", s.mac_share}});
    if (s.mean_iou) samples.back()["mean_iou"] = *s.mean_iou;
  }
  Json models = Json::array();
  for (const auto& model : manifest.models) models.push_back(model_json(model));
  Json sections = Json::array();
  for (const auto& s : manifest.sections) {
    sections.push_back(
        {{"name", s.name}, {"offset", s.offset}, {"bytes", s.bytes}, {"sha256", s.sha256}});
  }
  return core::format_json_line(Json{{"format", kFormat},
                                     {"version", kBundleVersion},
                                     {"created_by", info.created_by},
                                     {"created", info.created},
                                     {"data", info.data},
                                     {"classes", info.classes},
                                     {"samples", std::move(samples)},
                                     {"model_bytes", info.model_bytes},
                                     {"models", std::move(models)},
                                     {"sections", std::move(sections)}});
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view name) {
  FLEETFIT_ASSIGN(const auto json, core::parse_json(text, name));
  const JsonView view(json, std::string(name));
  if (const auto format = view.text("format"); !format || *format != kFormat)
    return view.error("it is no manifest of a bundle");
  if (const auto version = view.integer("version"); !version || *version != kBundleVersion)
    return view.error("its version is not that of the header");

  Manifest manifest;
  Fields fields;
  fields.take(read_info(view), manifest.info);
  fields.take(read_list<BundleSection>(view, "sections", kMostSections, read_section),
              manifest.sections);
  const auto model = [&](const JsonView& item) {
    return read_model(item, manifest.sections.size());
  };
  fields.take(read_list<ModelEntry>(view, "models", kMostModels, model), manifest.models);
  FLEETFIT_TRY(check_layout(view, manifest.sections));
  return std::move(fields).finish(std::move(manifest));
}

}  // namespace fleetfit::elastic
