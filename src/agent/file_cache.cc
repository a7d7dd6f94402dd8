#include "agent/file_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <vector>

#include "agent/backoff.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::agent {
namespace {

namespace fs = std::filesystem;

bool has_hash(const fs::path& file, std::string_view hash) {
  const auto mapped = core::MappedFile::open(file);
  if (!mapped) return false;
  const auto bytes = mapped->bytes();
  return core::sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) == hash;
}

struct CachedFile {
  fs::path path;
  std::int64_t bytes = 0;
  fs::file_time_type used;
};

/// Those that were not used for longest come first.
std::vector<CachedFile> files_in(const fs::path& folder) {
  std::vector<CachedFile> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code gone;
    if (!entry.is_regular_file(gone)) continue;
    files.push_back({.path = entry.path(),
                     .bytes = static_cast<std::int64_t>(entry.file_size(gone)),
                     .used = entry.last_write_time(gone)});
  }
  std::ranges::sort(files, {}, &CachedFile::used);
  return files;
}

}  // namespace

Result<fs::path> FileCache::fetch(const std::string& hash, const std::stop_token& stop) {
  FLEETFIT_TRY(fleet::check_hash(hash));
  std::error_code error;
  fs::create_directories(options_.folder, error);
  if (error)
    return fail(ErrorCode::io, fmt::format("{}: {}", options_.folder.string(), error.message()));
  auto file = options_.folder / hash;
  if (fs::exists(file, error) && !has_hash(file, hash)) fs::remove(file, error);
  if (!fs::exists(file, error)) {
    FLEETFIT_TRY(download(hash, file, stop));
  }
  fs::last_write_time(file, fs::file_time_type::clock::now(), error);
  in_use_.insert(hash);
  if (auto ok = make_room(); !ok) {
    fs::remove(file, error);
    return tl::unexpected(std::move(ok.error()));
  }
  return file;
}

Status FileCache::download(const std::string& hash, const fs::path& file,
                           const std::stop_token& stop) {
  Backoff backoff(std::hash<std::string>{}(hash));
  for (int attempt = 1;; ++attempt) {
    const auto done = server_.download(hash, file);
    if (done) return {};
    const auto message = fmt::format("file {}: {}", hash, done.error().message);
    if (!done.error().passing() || attempt >= options_.attempts)
      return fail(ErrorCode::io, message);
    backoff.failed({}, done.error().retry_after_s);
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(backoff.until());
    if (!options_.sleep(pause, stop)) return fail(ErrorCode::cancelled, message);
  }
}

Status FileCache::make_room() {
  const auto files = files_in(options_.folder);
  std::int64_t bytes = 0;
  for (const auto& file : files) bytes += file.bytes;
  for (const bool also_pinned : {false, true}) {
    for (const auto& file : files) {
      if (bytes <= options_.most_bytes) return {};
      const auto name = file.path.filename().string();
      const bool pinned = options_.pinned.contains(name);
      if (in_use_.contains(name) || pinned != also_pinned) continue;
      std::error_code error;
      if (fs::remove(file.path, error)) bytes -= file.bytes;
    }
  }
  if (bytes <= options_.most_bytes) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("the job's files have {} bytes, and the cache has room for {}", bytes,
                          options_.most_bytes));
}

}  // namespace fleetfit::agent
