#pragma once

#include <gtest/gtest.h>
// jpeglib.h uses FILE without including it.
#include <cstdio>
#include <cstdlib>
// clang-format off
#include <jpeglib.h>
// clang-format on
#include <png.h>

#include <string>
#include <vector>

#include "fleetfit/data/image.h"

/// Image files for tests, written by libpng and libjpeg, or by hand.
namespace fleetfit::data {

inline std::string png_file(const Image& image, png_uint_32 format, const void* palette = nullptr,
                            png_uint_32 colours = 0) {
  png_image state{};
  state.version = PNG_IMAGE_VERSION;
  state.width = static_cast<png_uint_32>(image.width);
  state.height = static_cast<png_uint_32>(image.height);
  state.format = format;
  state.colormap_entries = colours;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(state);
  std::string file(size, '\0');
  const int ok =
      png_image_write_to_memory(&state, file.data(), &size, 0, image.pixels.data(), 0, palette);
  EXPECT_NE(ok, 0) << state.message;
  file.resize(size);
  return file;
}

inline std::string png_file(const Image& image) {
  return png_file(image, image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB);
}

struct JpegKind {
  J_COLOR_SPACE pixels = JCS_RGB;
  bool progressive = false;
};

inline std::string jpeg_file(Image image, const JpegKind& kind) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &bytes, &size);
  state.image_width = static_cast<JDIMENSION>(image.width);
  state.image_height = static_cast<JDIMENSION>(image.height);
  state.input_components = static_cast<int>(image.channels);
  state.in_color_space = kind.pixels;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 95, TRUE);
  if (kind.progressive) jpeg_simple_progression(&state);
  jpeg_start_compress(&state, TRUE);
  while (state.next_scanline < state.image_height) {
    JSAMPROW row = image.pixels.data() + static_cast<std::size_t>(state.next_scanline) *
                                             static_cast<std::size_t>(image.width) *
                                             static_cast<std::size_t>(image.channels);
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);  // NOLINT(cppcoreguidelines-no-malloc): libjpeg allocated it
  return file;
}

/// Little-endian.
inline std::string number(std::uint64_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(value & 255);
    value >>= 8;
  }
  return bytes;
}

struct BmpHeader {
  std::int32_t width = 0;
  std::int32_t height = 0;
  std::uint32_t bits = 24;
  std::uint32_t method = 0;
  std::uint32_t colours = 0;
};

/// `body`: palette and pixels.
inline std::string bmp_file(const BmpHeader& header, const std::string& body,
                            std::uint32_t palette_bytes = 0) {
  return "BM" + number(static_cast<std::uint32_t>(54 + body.size()), 4) + number(0, 4) +
         number(54 + palette_bytes, 4) + number(40, 4) +
         number(static_cast<std::uint32_t>(header.width), 4) +
         number(static_cast<std::uint32_t>(header.height), 4) + number(1, 2) +
         number(header.bits, 2) + number(header.method, 4) + number(0, 12) +
         number(header.colours, 4) + number(0, 4) + body;
}

inline Result<Image> decode(const std::string& file, const ImageLimits& limits = {}) {
  return decode_image(std::as_bytes(std::span(file)), limits);
}

}  // namespace fleetfit::data
