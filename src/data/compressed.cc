#include "data/compressed.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

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

}  // namespace fleetfit::data
