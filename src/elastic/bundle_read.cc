#include <fmt/format.h>

#include <algorithm>

#include "elastic/bundle_format.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"

namespace fleetfit::elastic {
namespace {

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

Result<Bundle> read_bundle(const std::filesystem::path& file, const BundleReadOptions& options) {
  auto checked = check_file(file, options);
  FLEETFIT_TRY(checked);
  return Bundle{.info = std::move(checked->open.manifest.info),
                .manifest_sha256 = std::move(checked->open.header.manifest_sha256),
                .models = std::move(checked->models)};
}

Result<BundleCheck> verify_bundle(const std::filesystem::path& file,
                                  const BundleReadOptions& options) {
  auto checked = check_file(file, options);
  FLEETFIT_TRY(checked);
  BundleCheck check{.version = kBundleVersion,
                    .bytes = checked->file->bytes().size(),
                    .sections = std::move(checked->open.manifest.sections),
                    .signature = signature_state(checked->open, options)};
  for (auto& section : check.sections) section.offset += sections_begin(checked->open.header);
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
