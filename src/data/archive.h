#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"

/// Files that are compressed, or hold other files, and numbers in files.
namespace fleetfit::data {

/// The whole of `file`, or else of `file`.gz, decompressed. `not_found` names `file` if neither is
/// there; broken or absurdly large content is `invalid_input`.
Result<std::string> read_maybe_compressed(const std::filesystem::path& file);

/// The content if it is a gzip file, whatever its name says, else the bytes as they are.
Result<std::string> unpacked(Result<std::string> bytes, const std::string& name);

/// The content of a gzip file. `name` stands for the file in messages.
Result<std::string> gunzip(const std::string& compressed, const std::string& name);

/// The number in `count` bytes, the least one first.
std::uint32_t little_endian(std::span<const std::byte> bytes, std::size_t at, std::size_t count);

/// A regular file in an archive.
struct TarEntry {
  std::string name;
  std::size_t offset = 0;  ///< of its content
  std::size_t size = 0;
};

/// The regular files of a tar archive in their order: ustar, with GNU's long names; folders, links
/// and notes of other kinds are skipped. `invalid_input`, naming the offset, if it is damaged or
/// cut short.
Result<std::vector<TarEntry>> read_tar(std::string_view archive);

}  // namespace fleetfit::data
