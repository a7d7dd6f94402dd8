#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/bundle.h"
#include "fleetfit/elastic/supernet.h"

/// The parts of a bundle file (docs/formats/bundle.md).
namespace fleetfit::elastic {

inline constexpr std::uint32_t kBundleVersion = 1;
inline constexpr std::uint64_t kHeaderBytes = 128;
inline constexpr std::uint64_t kPageBytes = 4096;  // sections begin at multiples of it

using Signature = std::array<unsigned char, 64>;  // Ed25519

/// The first bytes of the file.
struct BundleHeader {
  std::uint64_t manifest_bytes = 0;
  std::string manifest_sha256 = {};  ///< as hexadecimal digits
  std::optional<Signature> signature = std::nullopt;
};

std::string format_header(const BundleHeader& header);

/// Fails with `invalid_input` on what is no bundle, a newer one, or a broken header.
Result<BundleHeader> parse_header(std::string_view file);

/// Where the first section begins.
std::uint64_t sections_begin(const BundleHeader& header);

/// The next multiple of a page.
std::uint64_t page_after(std::uint64_t offset);

/// The extent of a first dimension that the file leaves open.
inline constexpr std::int64_t kBatch = 0;

/// An input or output of a branch.
struct TensorEntry {
  std::string name = {};
  std::string type = {};
  std::vector<std::int64_t> shape = {};

  bool operator==(const TensorEntry&) const = default;
};
core::Fields fields_of(const TensorEntry*);

struct BranchEntry {
  BranchKind kind = BranchKind::original;
  std::size_t span = 1;
  double share = 1;
  std::size_t section = 0;
  std::vector<TensorEntry> inputs = {};
  std::vector<TensorEntry> outputs = {};
  std::int64_t macs = 0;  ///< of one image
  std::int64_t params = 0;
  std::int64_t weight_bytes = 0;
};
core::Fields fields_of(const BranchEntry*);

struct BlockEntry {
  std::string name = {};
  std::vector<BranchEntry> branches = {};
};
core::Fields fields_of(const BlockEntry*);

struct ModelEntry {
  std::string name = {};
  std::vector<BlockEntry> blocks = {};
};
core::Fields fields_of(const ModelEntry*);

/// What the file says of itself. Offsets of sections count from the first of them, so that they do
/// not depend on the manifest's own length.
struct Manifest {
  BundleInfo info = {};
  std::vector<BundleSection> sections = {};
  std::vector<ModelEntry> models = {};
};
core::Fields fields_of(const Manifest*);

std::string format_manifest(const Manifest& manifest);

/// Fails with `invalid_input`, naming the field; also on counts beyond all reason, on sections that
/// do not follow each other page by page, and on branches that name a section that is not there.
Result<Manifest> parse_manifest(std::string_view text, std::string_view name);

/// The models of a manifest, out of its sections, checked to be what it says they are and to fit
/// together. Their constants refer to the sections' bytes in `file`, whose memory is given back; if
/// there is no such file, they are copied.
struct SectionSource {
  std::vector<std::span<const std::byte>> sections = {};
  std::shared_ptr<const core::MappedFile> file = nullptr;  ///< shared by all constants
};
Result<std::vector<Supernet>> read_models(const Manifest& manifest, const SectionSource& source,
                                          std::int64_t batch);

/// What a bundle relies on: the models fit together, and samples are of subnets that there are.
Status check_models(const std::vector<Supernet>& models, const BundleInfo& info);

/// The models of a file without a look at its checksums, which no fuzzer gets past.
Result<std::vector<Supernet>> read_models_unchecked(std::span<const std::byte> file);

/// Ed25519 with keys in PEM files.
Result<Signature> sign(std::string_view message, const std::filesystem::path& private_key);
Status check_signature(std::string_view message, const Signature& signature,
                       const std::filesystem::path& public_key);

}  // namespace fleetfit::elastic
