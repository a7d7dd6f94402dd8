#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fleetfit/core/result.h"

/// Files as wholes. Errors name the file and say what is wrong with it: `not_found` if it does not
/// exist, `invalid_input` if it is a folder, not a regular file or too large, `io` if the system
/// refuses.
namespace fleetfit::core {

enum class SpecialFiles {
  refuse,  ///< devices, pipes and sockets are an error; looking at them never blocks
  allow,   ///< read to their end, waiting for it if need be (/dev/stdin, process substitution)
};

struct ReadOptions {
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
  SpecialFiles special_files = SpecialFiles::refuse;
};

/// The whole file, text or binary, as it is.
Result<std::string> read_file(const std::filesystem::path& path, const ReadOptions& options = {});

/// Whether a file has to be there after the machine has failed. Waiting for the disk takes longer
/// than writing does.
enum class Durability : std::uint8_t { lasting, scratch };

/// Replaces the file by `content`, or creates it: readers see the old or the new content, never a
/// part, even if the machine fails in between (of a scratch file: the program). Keeps the
/// permissions of the file it replaces, and follows a link. A device or pipe (/dev/stdout) is
/// written straight, as it cannot be replaced.
Status write_file(const std::filesystem::path& path, std::string_view content,
                  Durability durability = Durability::lasting);

/// A file that is written piece by piece, in the manner of `write_file`: it replaces what was there
/// when it is committed, and leaves nothing behind if it is not.
class FileWriter {
 public:
  static Result<FileWriter> open(const std::filesystem::path& path);

  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();

  Status write(std::string_view bytes);

  /// Once, after the last piece.
  Status commit(Durability durability = Durability::lasting);

 private:
  struct Target;
  explicit FileWriter(std::unique_ptr<Target> target);

  std::unique_ptr<Target> target_;
};

/// A regular file whose bytes are read on demand. The view lives as long as the object, wherever it
/// is moved. A file that another program cuts short meanwhile raises SIGBUS: use it for files that
/// are only replaced.
class MappedFile {
 public:
  /// Refuses everything but regular files, without waiting. An empty file gives an empty view.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  /// Gives the memory of a part of `bytes()` back; a later look reads it from the
  /// file.
  void release(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

/// With those above it, unless it is there.
Status create_folder(const std::filesystem::path& folder);

}  // namespace fleetfit::core
