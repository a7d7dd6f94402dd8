#include "fleetfit/data/image.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string>

// jpeglib.h uses FILE and size_t without including them, so these come last.
#include <jerror.h>
#include <jpeglib.h>

#include "data/archive.h"
#include "fleetfit/core/file.h"

namespace fleetfit::data {
namespace {

/// An image of this size without its pixels' values; `invalid_input` if it has none, or more than
/// the limit.
Result<Image> blank_image(std::int64_t height, std::int64_t width, std::int64_t channels,
                          const ImageLimits& limits) {
  if (height <= 0 || width <= 0)
    return fail(ErrorCode::invalid_input, fmt::format("an image of {} x {} pixels", width, height));
  if (height > limits.max_pixels / width)
    return fail(ErrorCode::invalid_input,
                fmt::format("an image of {} x {} pixels is larger than {} pixels", width, height,
                            limits.max_pixels));
  Image image{.height = height, .width = width, .channels = channels};
  image.pixels.resize(static_cast<std::size_t>(height * width * channels));
  return image;
}

// --- BMP

constexpr std::size_t kFileHeader = 14;
constexpr std::size_t kInfoHeader = 40;

struct BmpHeader {
  std::size_t pixels_at = 0;
  std::size_t palette_at = 0;
  std::size_t colours = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool bottom_up = true;
  unsigned bits = 0;

  std::size_t row_bytes() const { return (static_cast<std::size_t>(width) * bits / 8 + 3) / 4 * 4; }
};

tl::unexpected<Error> bmp_cut_short() {
  return fail(ErrorCode::invalid_input, "the BMP file is cut short");
}

Result<BmpHeader> read_bmp_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kFileHeader + kInfoHeader) return bmp_cut_short();
  const auto number = [&](std::size_t at, std::size_t size) {
    return little_endian(bytes, at, size);
  };
  const auto extent = [&](std::size_t at) -> std::int64_t {
    return static_cast<std::int32_t>(number(at, 4));
  };
  const std::size_t info_size = number(14, 4);
  const auto bits = number(28, 2);
  if (info_size < kInfoHeader || number(30, 4) != 0 || (bits != 8 && bits != 24))
    return fail(ErrorCode::unsupported,
                fmt::format("a BMP of {} bits, method {}; known are 8 and 24 bits, not compressed",
                            bits, number(30, 4)));
  BmpHeader header{.pixels_at = number(10, 4),
                   .palette_at = kFileHeader + info_size,
                   .width = extent(18),
                   .height = std::abs(extent(22)),
                   .bottom_up = extent(22) > 0,
                   .bits = bits};
  if (bits == 8) {
    const auto used = number(46, 4);
    header.colours = used == 0 ? 256 : used;
    if (header.colours > 256)
      return fail(ErrorCode::invalid_input, fmt::format("a BMP palette of {} colours", used));
    if (header.palette_at > bytes.size() || bytes.size() - header.palette_at < header.colours * 4)
      return bmp_cut_short();
  }
  return header;
}

Status copy_bmp_row(std::span<const std::byte> row, std::span<const std::byte> palette,
                    const BmpHeader& header, std::uint8_t* out) {
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

Result<Image> decode_bmp(std::span<const std::byte> bytes, const ImageLimits& limits) {
  FLEETFIT_ASSIGN(const auto header, read_bmp_header(bytes));
  auto image = blank_image(header.height, header.width, 3, limits);
  if (!image) return image;
  const auto height = static_cast<std::size_t>(image->height);
  if (header.pixels_at > bytes.size() ||
      bytes.size() - header.pixels_at < height * header.row_bytes())
    return bmp_cut_short();
  const auto palette = header.bits == 8 ? bytes.subspan(header.palette_at) : bytes;
  for (std::size_t y = 0; y < height; ++y) {
    const auto line = header.bottom_up ? height - 1 - y : y;
    const auto row = bytes.subspan(header.pixels_at + line * header.row_bytes());
    auto* out = image->pixels.data() + y * static_cast<std::size_t>(image->width) * 3;
    FLEETFIT_TRY(copy_bmp_row(row, palette, header, out));
  }
  return image;
}

// --- JPEG

// Each scan of a progressive file goes over the whole image; encoders write about ten.
constexpr int kMostScans = 100;

/// libjpeg reports errors by a function that must not return. This one jumps back to the call that
/// began, so that no frame with destructors may lie in between: the functions below that call
/// libjpeg have none.
class JpegDecoder {
 public:
  explicit JpegDecoder(std::span<const std::byte> bytes) : bytes_(bytes) {
    state_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr state) { of(state).jump_back(); };
    errors_.emit_message = [](j_common_ptr state, int level) {
      // The rest of a file that is cut short would be grey.
      if (level < 0 && state->err->msg_code == JWRN_JPEG_EOF) of(state).jump_back();
    };
    progress_.progress_monitor = [](j_common_ptr state) {
      if (of(state).state_.input_scan_number > kMostScans) of(state).jump_back();
    };
    state_.client_data = this;
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&state_); }

  /// Up to the size of the image. False, as in `read`: see error().
  bool begin() {
    if (setjmp(back_) != 0) return false;  // NOLINT(cert-err52-cpp): libjpeg's way
    jpeg_create_decompress(&state_);
    state_.client_data = this;
    state_.progress = &progress_;
    jpeg_mem_src(&state_, reinterpret_cast<const unsigned char*>(bytes_.data()),
                 static_cast<unsigned long>(bytes_.size()));
    jpeg_read_header(&state_, TRUE);
    return true;
  }

  bool read(std::uint8_t* pixels) {
    if (setjmp(back_) != 0) return false;  // NOLINT(cert-err52-cpp): libjpeg's way
    jpeg_start_decompress(&state_);
    const std::size_t row = std::size_t{state_.output_width} * state_.output_components;
    while (state_.output_scanline < state_.output_height) {
      JSAMPROW line = pixels + state_.output_scanline * row;
      jpeg_read_scanlines(&state_, &line, 1);
    }
    jpeg_finish_decompress(&state_);
    return true;
  }

  jpeg_decompress_struct& state() { return state_; }

  tl::unexpected<Error> error() const {
    return fail(ErrorCode::invalid_input, fmt::format("broken JPEG: {}", message_.data()));
  }

 private:
  static JpegDecoder& of(j_common_ptr state) {
    return *static_cast<JpegDecoder*>(state->client_data);
  }

  [[noreturn]] void jump_back() {
    (*errors_.format_message)(reinterpret_cast<j_common_ptr>(&state_), message_.data());
    if (state_.input_scan_number > kMostScans) message_ = {"too many scans"};
    std::longjmp(back_, 1);  // NOLINT(cert-err52-cpp): libjpeg's way
  }

  std::span<const std::byte> bytes_;
  jpeg_decompress_struct state_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf back_{};
  std::array<char, JMSG_LENGTH_MAX> message_{};
};

Result<Image> decode_jpeg(std::span<const std::byte> bytes, const ImageLimits& limits) {
  JpegDecoder decoder(bytes);
  if (!decoder.begin()) return decoder.error();
  auto& state = decoder.state();
  const bool grey = state.jpeg_color_space == JCS_GRAYSCALE;
  if (!grey && state.jpeg_color_space != JCS_YCbCr && state.jpeg_color_space != JCS_RGB)
    return fail(ErrorCode::unsupported, "a JPEG in other colours than grey or red, green, blue");
  state.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  auto image = blank_image(state.image_height, state.image_width, grey ? 1 : 3, limits);
  if (!image) return image;
  if (!decoder.read(image->pixels.data())) return decoder.error();
  return image;
}

// --- PNG

/// libpng's state, freed whatever happens.
class PngReader {
 public:
  PngReader() { state_.version = PNG_IMAGE_VERSION; }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_image_free(&state_); }

  png_image& state() { return state_; }

  tl::unexpected<Error> error() const {
    return fail(ErrorCode::invalid_input, fmt::format("broken PNG: {}", state_.message));
  }

 private:
  png_image state_{};
};

Result<Image> decode_png(std::span<const std::byte> bytes, const ImageLimits& limits) {
  PngReader reader;
  auto& state = reader.state();
  if (png_image_begin_read_from_memory(&state, bytes.data(), bytes.size()) == 0)
    return reader.error();
  const bool colour = (state.format & PNG_FORMAT_FLAG_COLOR) != 0;
  state.format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  auto image = blank_image(state.height, state.width, colour ? 3 : 1, limits);
  if (!image) return image;
  const png_color black{};
  if (png_image_finish_read(&state, &black, image->pixels.data(), 0, nullptr) == 0)
    return reader.error();
  return image;
}

// --- all of them

template <std::size_t n>
bool starts_with(std::span<const std::byte> bytes, const std::array<unsigned, n>& magic) {
  return bytes.size() >= n &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](unsigned a, std::byte b) { return a == std::to_integer<unsigned>(b); });
}

constexpr std::array<unsigned, 8> kPng{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::array<unsigned, 3> kJpeg{0xff, 0xd8, 0xff};
constexpr std::array<unsigned, 2> kBmp{'B', 'M'};

}  // namespace

Result<Image> decode_image(std::span<const std::byte> bytes, const ImageLimits& limits) {
  if (starts_with(bytes, kPng)) return decode_png(bytes, limits);
  if (starts_with(bytes, kJpeg)) return decode_jpeg(bytes, limits);
  if (starts_with(bytes, kBmp)) return decode_bmp(bytes, limits);
  return fail(ErrorCode::unsupported, "no PNG, JPEG or BMP image");
}

Result<Image> read_image(const std::filesystem::path& file, const ImageLimits& limits) {
  FLEETFIT_ASSIGN(const auto content, core::read_file(file));
  FLEETFIT_ASSIGN(
      auto image,
      core::within(file.string(), decode_image(std::as_bytes(std::span(content)), limits)));
  return image;
}

}  // namespace fleetfit::data
