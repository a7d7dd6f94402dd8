#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "data/archive.h"
#include "data/sources.h"
#include "fleetfit/data/image.h"

// An image, a gzip file, or the two files of MNIST's format one after the other.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit::data;
  const auto image = decode_image(std::as_bytes(std::span(data, size)), {.max_pixels = 1 << 18});
  if (image && image->pixels.size() !=
                   static_cast<std::size_t>(image->height * image->width * image->channels))
    std::abort();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto middle = size < 2 ? 0 : text[0] == 0 ? size * 3 / 4 : size / 2;
  if (const auto records = parse_idx(text.substr(0, middle), text.substr(middle));
      records && records->pixels.size() != records->labels.size() * records->image_bytes())
    std::abort();
  constexpr std::size_t kMostCompressed = 4096;  // a gzip file may hold a thousand times as much
  if (size < kMostCompressed) static_cast<void>(gunzip(text, "fuzz"));
  return 0;
}
