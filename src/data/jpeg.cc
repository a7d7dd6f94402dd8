#include <fmt/format.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <string>

// jpeglib.h uses FILE and size_t without including them, so these come last.
#include <jerror.h>
#include <jpeglib.h>

#include "data/decoders.h"

namespace fleetfit::data {
namespace {

// Each scan of a progressive file goes over the whole image; encoders write about ten.
constexpr int kMostScans = 100;

/// libjpeg reports errors by a function that must not return. This one jumps back to the call that
/// began, so that no frame with destructors may lie in between: the functions below that call
/// libjpeg have none.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes) {
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
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&state_); }

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
  static Decoder& of(j_common_ptr state) { return *static_cast<Decoder*>(state->client_data); }

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

}  // namespace

Result<Image> decode_jpeg(std::span<const std::byte> bytes, const ImageLimits& limits) {
  Decoder decoder(bytes);
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

}  // namespace fleetfit::data
