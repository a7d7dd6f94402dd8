#include "data/archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <optional>

#include "fleetfit/core/file.h"

namespace fleetfit::data {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kFirstBytes = std::size_t{1} << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib's code for the largest window in a gzip file

class Inflater {
 public:
  Inflater() : ready_(inflateInit2(&stream_, kGzipWindow) == Z_OK) {}
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_;
};

constexpr std::size_t kBlock = 512;

std::string_view text_field(std::string_view header, std::size_t at, std::size_t size) {
  const auto field = header.substr(at, size);
  return field.substr(0, field.find('\0'));
}

/// Octal digits between spaces and zeros.
std::optional<std::size_t> octal_field(std::string_view header, std::size_t at, std::size_t size) {
  std::size_t value = 0;
  bool any = false;
  for (const char c : header.substr(at, size)) {
    if (c == ' ' || c == '\0') {
      if (any) break;
      continue;
    }
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::size_t>(c - '0');
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

/// The sum of the header's bytes, those of the sum itself read as spaces.
bool has_right_sum(std::string_view header) {
  constexpr std::size_t kAt = 148;
  constexpr std::size_t kSize = 8;
  std::size_t sum = kSize * static_cast<std::size_t>(' ');
  for (std::size_t i = 0; i < kBlock; ++i)
    if (i < kAt || i >= kAt + kSize) sum += static_cast<unsigned char>(header[i]);
  return octal_field(header, kAt, kSize) == sum;
}

std::string full_name(std::string_view header) {
  constexpr std::size_t kPrefix = 345;
  const std::string name(text_field(header, 0, 100));
  const bool is_ustar = header.substr(257, 6) == std::string_view("ustar\0", 6);
  const auto prefix = is_ustar ? text_field(header, kPrefix, 155) : std::string_view();
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

class TarReader {
 public:
  explicit TarReader(std::string_view archive) : archive_(archive) {}

  Result<std::vector<TarEntry>> read() {
    while (at_ < archive_.size() && !is_end()) {
      FLEETFIT_TRY(read_entry());
    }
    return std::move(entries_);
  }

 private:
  tl::unexpected<Error> broken(std::string_view what) const {
    return fail(ErrorCode::invalid_input, fmt::format("byte {}: {}", at_, what));
  }

  bool is_end() const {
    return std::ranges::all_of(archive_.substr(at_, kBlock), [](char c) { return c == '\0'; });
  }

  Status read_entry() {
    const auto header = archive_.substr(at_, kBlock);
    if (header.size() < kBlock) return broken("the tar archive is cut short");
    if (!has_right_sum(header)) return broken("no header of a tar archive");
    const auto size = octal_field(header, 124, 12);
    if (!size) return broken("a file without a size");
    const auto content = at_ + kBlock;
    if (*size > archive_.size() - content) return broken("the file's content is cut short");
    take(header, content, *size);
    at_ = std::min(archive_.size(), content + (*size + kBlock - 1) / kBlock * kBlock);
    return {};
  }

  void take(std::string_view header, std::size_t content, std::size_t size) {
    const char kind = header[156];
    if (kind == 'L') {  // GNU: the name of the next file
      const auto name = archive_.substr(content, size);
      long_name_ = name.substr(0, name.find('\0'));
      return;
    }
    if (kind == '0' || kind == '\0')
      entries_.push_back({.name = long_name_.empty() ? full_name(header) : long_name_,
                          .offset = content,
                          .size = size});
    if (kind != 'x' && kind != 'g' && kind != 'K') long_name_.clear();
  }

  std::string_view archive_;
  std::size_t at_ = 0;
  std::string long_name_;
  std::vector<TarEntry> entries_;
};

}  // namespace

Result<std::string> gunzip(const std::string& compressed, const std::string& name) {
  Inflater inflater;
  if (!inflater.ready()) return fail(ErrorCode::internal, "zlib does not start");
  std::string input = compressed;  // zlib wants to be able to write, and does not
  auto& stream = inflater.stream();
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  std::string output;
  std::size_t used = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (used == kMostBytes)
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: holds more than {} bytes", name, kMostBytes));
    if (used == output.size())
      output.resize(std::clamp(output.size() * 2, kFirstBytes, kMostBytes));
    stream.next_out = reinterpret_cast<Bytef*>(output.data()) + used;
    stream.avail_out = static_cast<uInt>(output.size() - used);
    status = inflate(&stream, Z_NO_FLUSH);
    used = output.size() - stream.avail_out;
  }
  if (status != Z_STREAM_END)
    return fail(ErrorCode::invalid_input, fmt::format("{}: the gzip data are broken", name));
  output.resize(used);
  return output;
}

Result<std::string> unpacked(Result<std::string> bytes, const std::string& name) {
  if (!bytes || !bytes->starts_with("\x1f\x8b")) return bytes;
  return gunzip(*bytes, name);
}

std::uint32_t little_endian(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

Result<std::string> read_maybe_compressed(const std::filesystem::path& file) {
  auto plain = core::read_file(file);
  if (plain || plain.error().code != ErrorCode::not_found) return plain;
  auto packed = file;
  packed += ".gz";
  const auto compressed = core::read_file(packed);
  if (!compressed)
    return compressed.error().code == ErrorCode::not_found ? plain
                                                           : Result<std::string>(compressed);
  return gunzip(*compressed, packed.string());
}

Result<std::vector<TarEntry>> read_tar(std::string_view archive) {
  return TarReader(archive).read();
}

}  // namespace fleetfit::data
