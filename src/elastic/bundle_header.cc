#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "elastic/bundle_format.h"

namespace fleetfit::elastic {
namespace {

// The first byte is no text, and line ends that get translated on the way are noticed.
constexpr std::string_view kMagic =
    "\x89"
    "FFB\r\n\x1a\n";
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kSignatureKindAt = 12;
constexpr std::size_t kManifestBytesAt = 16;
constexpr std::size_t kManifestHashAt = 24;
constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kSignatureAt = kManifestHashAt + kHashBytes;

constexpr std::uint64_t kUnsigned = 0;
constexpr std::uint64_t kEd25519 = 1;

void put(std::string& header, std::size_t at, std::size_t bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) header[at + i] = static_cast<char>(value >> 8 * i & 0xff);
}

std::uint64_t get(std::string_view header, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(header[at + i])} << 8 * i;
  return value;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

std::string from_hex(std::string_view hex) {
  std::string bytes(hex.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, value, 16);
    bytes[i] = static_cast<char>(value);
  }
  return bytes;
}

bool all_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == '\0'; });
}

}  // namespace

std::uint64_t page_after(std::uint64_t offset) {
  return (offset + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::uint64_t sections_begin(const BundleHeader& header) {
  return page_after(kHeaderBytes + header.manifest_bytes);
}

std::string format_header(const BundleHeader& header) {
  std::string bytes(kHeaderBytes, '\0');
  bytes.replace(0, kMagic.size(), kMagic);
  put(bytes, kVersionAt, 4, kBundleVersion);
  put(bytes, kSignatureKindAt, 4, header.signature ? kEd25519 : kUnsigned);
  put(bytes, kManifestBytesAt, 8, header.manifest_bytes);
  bytes.replace(kManifestHashAt, kHashBytes, from_hex(header.manifest_sha256));
  if (header.signature)
    std::copy(header.signature->begin(), header.signature->end(), bytes.begin() + kSignatureAt);
  return bytes;
}

Result<BundleHeader> parse_header(std::string_view file) {
  if (!file.starts_with(kMagic)) return refuse("it is no bundle of fleetfit");
  if (file.size() < kHeaderBytes) return refuse("it is cut short: its header is not whole");
  const auto version = get(file, kVersionAt, 4);
  if (version > kBundleVersion) {
    return refuse(
        fmt::format("it has version {} of the format, and this program knows only {}: a newer "
                    "fleetfit can read it",
                    version, kBundleVersion));
  }
  if (version < 1) return refuse("its header is damaged");
  BundleHeader header{
      .manifest_bytes = get(file, kManifestBytesAt, 8),
      .manifest_sha256 = to_hex(file.substr(kManifestHashAt, kHashBytes)),
  };
  const auto kind = get(file, kSignatureKindAt, 4);
  std::size_t used = kSignatureAt;
  if (kind == kEd25519) {
    const auto signature = file.substr(kSignatureAt, sizeof(Signature));
    std::ranges::copy(signature, header.signature.emplace().begin());
    used += signature.size();
  } else if (kind != kUnsigned) {
    return refuse(fmt::format("it has a signature of the unknown kind {}", kind));
  }
  if (!all_zero(file.substr(used, kHeaderBytes - used))) return refuse("its header is damaged");
  return header;
}

}  // namespace fleetfit::elastic
