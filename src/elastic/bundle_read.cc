#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "elastic/bundle_format.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"
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
    FLEETFIT_TRY(core::within(place, check_branch(*graph, entry, batch_)));
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

constexpr std::uint64_t kMostManifestBytes = std::uint64_t{1} << 26;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

enum class Checksums : std::uint8_t { verify, ignore };

/// A bundle whose header, manifest, signature and layout are right. Refers to the file's bytes.
struct OpenBundle {
  BundleHeader header = {};
  std::string_view manifest_text = {};
  Manifest manifest = {};
  std::vector<std::span<const std::byte>> sections = {};
};

/// What lies between the manifest and the first section, and between sections.
Status check_gap(std::string_view file, std::uint64_t from, std::uint64_t to) {
  const auto gap = file.substr(from, to - from);
  if (std::ranges::all_of(gap, [](char c) { return c == '\0'; })) return {};
  return refuse(fmt::format("it is damaged: bytes {} to {} are not empty", from, to));
}

Status find_sections(std::string_view file, OpenBundle& bundle) {
  const auto begin = sections_begin(bundle.header);
  std::uint64_t end = kHeaderBytes + bundle.header.manifest_bytes;
  for (const auto& section : bundle.manifest.sections) {
    const auto from = begin + section.offset;
    if (from > file.size() || section.bytes > file.size() - from)
      return refuse(fmt::format("it is cut short: section '{}' is not whole", section.name));
    FLEETFIT_TRY(check_gap(file, end, from));
    bundle.sections.push_back(std::as_bytes(std::span(file.substr(from, section.bytes))));
    end = from + section.bytes;
  }
  if (end != file.size())
    return refuse(fmt::format("{} bytes follow the last section", file.size() - end));
  return {};
}

Status check_authorship(const OpenBundle& bundle, const BundleReadOptions& options) {
  if (!options.public_key) return {};
  if (!bundle.header.signature) return refuse("it is not signed, and a key is required");
  return check_signature(bundle.manifest_text, *bundle.header.signature, *options.public_key);
}

Result<OpenBundle> open_bundle(std::string_view file, const BundleReadOptions& options,
                               Checksums checksums) {
  FLEETFIT_ASSIGN(auto header, parse_header(file));
  OpenBundle bundle{.header = std::move(header)};
  const auto length = bundle.header.manifest_bytes;
  if (length > kMostManifestBytes) return refuse("it is damaged: its manifest has no end");
  if (length > file.size() - kHeaderBytes)
    return refuse("it is cut short: its manifest is not whole");
  bundle.manifest_text = file.substr(kHeaderBytes, length);
  if (checksums == Checksums::verify &&
      core::sha256_hex(bundle.manifest_text) != bundle.header.manifest_sha256)
    return refuse("it is damaged: the checksum of its manifest is wrong");
  FLEETFIT_TRY(check_authorship(bundle, options));
  FLEETFIT_ASSIGN(auto manifest, parse_manifest(bundle.manifest_text, "manifest"));
  bundle.manifest = std::move(manifest);
  FLEETFIT_TRY(find_sections(file, bundle));
  return bundle;
}

/// Gives the memory of each section back after it was summed up.
Status check_sections(const OpenBundle& bundle, const core::MappedFile& file) {
  for (std::size_t i = 0; i < bundle.sections.size(); ++i) {
    const auto& section = bundle.manifest.sections[i];
    const bool same = core::sha256_hex(text_of(bundle.sections[i])) == section.sha256;
    file.release(bundle.sections[i]);
    if (!same) {
      return refuse(
          fmt::format("it is damaged: the checksum of section '{}' is wrong", section.name));
    }
  }
  return {};
}

struct CheckedBundle {
  std::shared_ptr<core::MappedFile> file;  // shared by all constants that refer to it
  OpenBundle open;
  std::vector<Supernet> models;
};

Result<CheckedBundle> check_mapped(const std::shared_ptr<core::MappedFile>& file,
                                   const BundleReadOptions& options) {
  if (options.batch < 1) return refuse(fmt::format("a batch of {} is not possible", options.batch));
  FLEETFIT_ASSIGN(auto open, open_bundle(text_of(file->bytes()), options, Checksums::verify));
  FLEETFIT_TRY(check_sections(open, *file));
  FLEETFIT_ASSIGN(auto models, read_models(open.manifest, {open.sections, file}, options.batch));
  return CheckedBundle{file, std::move(open), std::move(models)};
}

Result<CheckedBundle> check_file(const std::filesystem::path& path,
                                 const BundleReadOptions& options) {
  FLEETFIT_ASSIGN(auto mapped, core::MappedFile::open(path));
  FLEETFIT_ASSIGN(
      auto checked,
      core::within(path.string(),
                   check_mapped(std::make_shared<core::MappedFile>(std::move(mapped)), options)));
  return checked;
}

std::string signature_state(const OpenBundle& bundle, const BundleReadOptions& options) {
  if (!bundle.header.signature) return "none";
  return options.public_key ? "valid" : "not checked";
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
    FLEETFIT_TRY(core::within(fmt::format("model {}", model.name), check_ends(model)));
  }
  const SubnetSpace space(models);
  for (const auto& sample : info.samples) {
    FLEETFIT_TRY(
        core::within(fmt::format("sample '{}'", sample.subnet), space.parse(sample.subnet)));
  }
  return {};
}

Result<Bundle> read_bundle(const std::filesystem::path& file, const BundleReadOptions& options) {
  FLEETFIT_ASSIGN(auto checked, check_file(file, options));
  return Bundle{.info = std::move(checked.open.manifest.info),
                .manifest_sha256 = std::move(checked.open.header.manifest_sha256),
                .models = std::move(checked.models)};
}

Result<BundleCheck> verify_bundle(const std::filesystem::path& file,
                                  const BundleReadOptions& options) {
  FLEETFIT_ASSIGN(auto checked, check_file(file, options));
  BundleCheck check{.version = kBundleVersion,
                    .bytes = checked.file->bytes().size(),
                    .sections = std::move(checked.open.manifest.sections),
                    .signature = signature_state(checked.open, options)};
  for (auto& section : check.sections) section.offset += sections_begin(checked.open.header);
  return check;
}

Status sign_bundle(const std::filesystem::path& file, const std::filesystem::path& private_key) {
  FLEETFIT_ASSIGN(const auto checked, check_file(file, {}));
  FLEETFIT_ASSIGN(const auto signature, sign(checked.open.manifest_text, private_key));
  BundleHeader header = checked.open.header;
  header.signature = signature;
  FLEETFIT_ASSIGN(auto writer, core::FileWriter::open(file));
  FLEETFIT_TRY(writer.write(format_header(header)));
  FLEETFIT_TRY(writer.write(text_of(checked.file->bytes()).substr(kHeaderBytes)));
  return writer.commit();
}

Result<std::vector<Supernet>> read_models_unchecked(std::span<const std::byte> file) {
  FLEETFIT_ASSIGN(const auto open, open_bundle(text_of(file), {}, Checksums::ignore));
  return read_models(open.manifest, {open.sections, nullptr}, 1);
}

}  // namespace fleetfit::elastic
