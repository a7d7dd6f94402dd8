#include <fmt/format.h>
#include <png.h>

#include "data/decoders.h"

namespace fleetfit::data {
namespace {

/// libpng's state, freed whatever happens.
class Reader {
 public:
  Reader() { state_.version = PNG_IMAGE_VERSION; }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_image_free(&state_); }

  png_image& state() { return state_; }

  tl::unexpected<Error> error() const {
    return fail(ErrorCode::invalid_input, fmt::format("broken PNG: {}", state_.message));
  }

 private:
  png_image state_{};
};

}  // namespace

Result<Image> decode_png(std::span<const std::byte> bytes, const ImageLimits& limits) {
  Reader reader;
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

}  // namespace fleetfit::data
