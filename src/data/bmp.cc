#include <fmt/format.h>

#include <cstdlib>

#include "data/decoders.h"

namespace fleetfit::data {
namespace {

/// The file's little-endian fields.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint32_t number(std::size_t offset, std::size_t size) const {
    std::uint32_t value = 0;
    for (std::size_t i = size; i-- > 0;)
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[offset + i]);
    return value;
  }
  std::int64_t extent(std::size_t offset) const {
    return static_cast<std::int32_t>(number(offset, 4));
  }

 private:
  std::span<const std::byte> bytes_;
};

constexpr std::size_t kFileHeader = 14;
constexpr std::size_t kInfoHeader = 40;

struct Header {
  std::size_t pixels_at = 0;
  std::size_t palette_at = 0;
  std::size_t colours = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool bottom_up = true;
  unsigned bits = 0;

  std::size_t row_bytes() const { return (static_cast<std::size_t>(width) * bits / 8 + 3) / 4 * 4; }
};

tl::unexpected<Error> cut_short() {
  return fail(ErrorCode::invalid_input, "the BMP file is cut short");
}

Result<Header> read_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kFileHeader + kInfoHeader) return cut_short();
  const Fields fields(bytes);
  const std::size_t info_size = fields.number(14, 4);
  const auto bits = fields.number(28, 2);
  if (info_size < kInfoHeader || fields.number(30, 4) != 0 || (bits != 8 && bits != 24))
    return fail(ErrorCode::unsupported,
                fmt::format("a BMP of {} bits, method {}; known are 8 and 24 bits, not compressed",
                            bits, fields.number(30, 4)));
  Header header{.pixels_at = fields.number(10, 4),
                .palette_at = kFileHeader + info_size,
                .width = fields.extent(18),
                .height = std::abs(fields.extent(22)),
                .bottom_up = fields.extent(22) > 0,
                .bits = bits};
  if (bits == 8) {
    const auto used = fields.number(46, 4);
    header.colours = used == 0 ? 256 : used;
    if (header.colours > 256)
      return fail(ErrorCode::invalid_input, fmt::format("a BMP palette of {} colours", used));
    if (header.palette_at > bytes.size() || bytes.size() - header.palette_at < header.colours * 4)
      return cut_short();
  }
  return header;
}

Status copy_row(std::span<const std::byte> row, std::span<const std::byte> palette,
                const Header& header, std::uint8_t* out) {
  for (std::size_t x = 0; x < static_cast<std::size_t>(header.width); ++x) {
    auto colour = row.subspan(header.bits == 24 ? x * 3 : x);
    if (header.bits == 8) {
      const auto index = std::to_integer<std::size_t>(colour[0]);
      if (index >= header.colours)
        return fail(ErrorCode::invalid_input,
                    fmt::format("a BMP pixel has colour {} of {}", index, header.colours));
      colour = palette.subspan(index * 4);
    }
    // Blue comes first in the file.
    for (const std::size_t c : {2U, 1U, 0U}) *out++ = std::to_integer<std::uint8_t>(colour[c]);
  }
  return {};
}

}  // namespace

Result<Image> decode_bmp(std::span<const std::byte> bytes, const ImageLimits& limits) {
  FLEETFIT_ASSIGN(const auto header, read_header(bytes));
  auto image = blank_image(header.height, header.width, 3, limits);
  if (!image) return image;
  const auto height = static_cast<std::size_t>(image->height);
  if (header.pixels_at > bytes.size() ||
      bytes.size() - header.pixels_at < height * header.row_bytes())
    return cut_short();
  const auto palette = header.bits == 8 ? bytes.subspan(header.palette_at) : bytes;
  for (std::size_t y = 0; y < height; ++y) {
    const auto line = header.bottom_up ? height - 1 - y : y;
    const auto row = bytes.subspan(header.pixels_at + line * header.row_bytes());
    auto* out = image->pixels.data() + y * static_cast<std::size_t>(image->width) * 3;
    FLEETFIT_TRY(copy_row(row, palette, header, out));
  }
  return image;
}

}  // namespace fleetfit::data
