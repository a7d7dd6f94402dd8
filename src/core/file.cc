#include "fleetfit/core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/move_file.h"

namespace fleetfit::core {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> cannot(std::string_view verb, const fs::path& path, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  return fail(missing ? ErrorCode::not_found : ErrorCode::io,
              fmt::format("cannot {} {}: {}", verb, path.string(), system_message(error)));
}

tl::unexpected<Error> unfit(const fs::path& path, std::string_view reason) {
  return fail(ErrorCode::invalid_input, fmt::format("cannot read {}: {}", path.string(), reason));
}

struct OpenFile {
  FileDescriptor fd;
  struct stat status = {};
};

// Non-blocking unless special files are wanted, because opening a pipe that nobody writes would
// wait for ever.
Result<OpenFile> open_to_read(const fs::path& path, SpecialFiles special_files) {
  const bool refuse = special_files == SpecialFiles::refuse;
  const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (refuse ? O_NONBLOCK : 0);
  OpenFile file{FileDescriptor(retry_interrupted([&] { return ::open(path.c_str(), flags); })), {}};
  if (!file.fd.is_open() && errno == ENXIO) return unfit(path, "it is not a regular file");
  if (!file.fd.is_open()) return cannot("read", path, errno);
  if (::fstat(file.fd.get(), &file.status) != 0) return cannot("read", path, errno);
  if (S_ISDIR(file.status.st_mode)) return unfit(path, "it is a folder");
  if (!S_ISREG(file.status.st_mode) && refuse) return unfit(path, "it is not a regular file");
  return file;
}

tl::unexpected<Error> too_large(const fs::path& path, std::uint64_t max_bytes) {
  return unfit(path, fmt::format("it is larger than the limit of {} bytes", max_bytes));
}

struct TemporaryFile {
  fs::path path;
  FileDescriptor fd;
};

// Created with the ordinary permissions, which mkstemp would not do.
Result<TemporaryFile> create_beside(const fs::path& path) {
  for (int attempt = 0;; ++attempt) {
    fs::path name = path.parent_path() / fmt::format(".fleetfit-{}-{}.tmp", ::getpid(), attempt);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    FileDescriptor fd(retry_interrupted([&] { return ::open(name.c_str(), flags, 0666); }));
    if (fd.is_open()) return TemporaryFile{std::move(name), std::move(fd)};
    if (errno != EEXIST) return cannot("write", path, errno);
  }
}

// A device or pipe, which is written straight.
Result<FileDescriptor> open_special(const fs::path& path) {
  const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
  FileDescriptor fd(retry_interrupted([&] { return ::open(path.c_str(), flags); }));
  if (!fd.is_open()) return cannot("write", path, errno);
  return fd;
}

}  // namespace

Result<std::string> read_file(const fs::path& path, const ReadOptions& options) {
  FLEETFIT_ASSIGN(auto file, open_to_read(path, options.special_files));
  const auto stated = static_cast<std::uint64_t>(std::max<off_t>(file.status.st_size, 0));
  if (stated > options.max_bytes) return too_large(path, options.max_bytes);

  // The stated size is only a guess: files of /proc state none, and a log may grow meanwhile.
  std::string content;
  std::size_t size = 0;
  for (;;) {
    if (size == content.size())
      content.resize(size == 0 ? std::max<std::size_t>(stated + 1, 4096) : size * 2);
    const auto got = retry_interrupted(
        [&] { return ::read(file.fd.get(), content.data() + size, content.size() - size); });
    if (got < 0) return cannot("read", path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > options.max_bytes) return too_large(path, options.max_bytes);
  }
  content.resize(size);
  return content;
}

struct FileWriter::Target {
  fs::path name;  // as the caller calls it
  fs::path path;  // what is replaced: `name` with links followed
  FileDescriptor fd = {};
  std::optional<fs::path> temporary = {};  // none for special files
  std::optional<mode_t> mode = {};         // of the file that is replaced
};

FileWriter::FileWriter(std::unique_ptr<Target> target) : target_(std::move(target)) {}
FileWriter::FileWriter(FileWriter&& other) noexcept = default;

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  std::swap(target_, other.target_);
  return *this;
}

FileWriter::~FileWriter() {
  if (target_ && target_->temporary) ::unlink(target_->temporary->c_str());
}

Result<FileWriter> FileWriter::open(const fs::path& path) {
  auto target = std::make_unique<Target>(Target{.name = path, .path = path});
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return cannot("write", path, EISDIR);
    if (!S_ISREG(status.st_mode)) {
      FLEETFIT_ASSIGN(auto fd, open_special(path));
      target->fd = std::move(fd);
      return FileWriter(std::move(target));
    }
    std::error_code error;
    target->path = fs::canonical(path, error);
    if (error) return cannot("write", path, error.value());
    target->mode = status.st_mode;
  }
  FLEETFIT_ASSIGN(auto temporary, create_beside(target->path));
  target->fd = std::move(temporary.fd);
  target->temporary = std::move(temporary.path);
  return FileWriter(std::move(target));
}

Status FileWriter::write(std::string_view bytes) {
  if (!write_all(target_->fd, bytes)) return cannot("write", target_->name, errno);
  return {};
}

Status FileWriter::commit(Durability durability) {
  if (!target_->temporary) return {};
  const auto& [name, path, fd, temporary, mode] = *target_;
  if (mode && ::fchmod(fd.get(), *mode & 07777) != 0) return cannot("write", name, errno);
  const bool lasting = durability == Durability::lasting;
  if (lasting && ::fsync(fd.get()) != 0) return cannot("write", name, errno);
  if (::rename(temporary->c_str(), path.c_str()) != 0) return cannot("write", name, errno);
  if (lasting) sync_folder(path.parent_path());
  target_->temporary.reset();
  return {};
}

Status write_file(const fs::path& path, std::string_view content, Durability durability) {
  FLEETFIT_ASSIGN(auto writer, FileWriter::open(path));
  FLEETFIT_TRY(writer.write(content));
  return writer.commit(durability);
}

void sync_folder(const fs::path& folder) {
  const FileDescriptor fd(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.is_open()) ::fsync(fd.get());
}

Status move_file(const fs::path& from, const fs::path& to) {
  const auto folder = to.parent_path();
  std::error_code error;
  const bool is_new = !folder.empty() && fs::create_directories(folder, error);
  if (error) return cannot("write", to, error.value());
  if (::rename(from.c_str(), to.c_str()) != 0) return cannot("write", to, errno);
  sync_folder(folder);
  if (is_new) sync_folder(folder.parent_path());
  return {};
}

Result<MappedFile> MappedFile::open(const fs::path& path) {
  FLEETFIT_ASSIGN(const auto file, open_to_read(path, SpecialFiles::refuse));
  const auto size = static_cast<std::size_t>(file.status.st_size);
  if (size == 0) return MappedFile({});
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (address == MAP_FAILED) return cannot("read", path, errno);
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<std::size_t>(part.data() - bytes_.data()) / page * page;
  const auto end = static_cast<std::size_t>(part.data() - bytes_.data()) + part.size();
  // It is only a hint: if the system does not take it, the pages stay.
  ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

Status create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return {};
  return fail(ErrorCode::io,
              fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
}

}  // namespace fleetfit::core
