#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "elastic/bundle_format.h"

namespace {

using namespace fleetfit;

/// Does with models what `bundle show` and `bundle extract` do.
void use_models(const Result<std::vector<elastic::Supernet>>& models) {
  if (!models) return;
  if (!elastic::check_supernets(*models)) std::abort();
  const elastic::SubnetSpace space(*models);
  static_cast<void>(space.size().decimal());
  for (std::size_t m = 0; m < models->size(); ++m) {
    const auto original = space.original(m);
    if (space.parse(space.format(original)) != original) std::abort();
    static_cast<void>(space.lower(original));
  }
}

/// A manifest, a zero, and one section that stands for all that the manifest speaks of: reaches
/// what lies behind offsets and lengths.
void use_parts(std::string_view input) {
  const auto end = input.find('\0');
  if (end == std::string_view::npos) return;
  const auto manifest = elastic::parse_manifest(input.substr(0, end), "fuzz");
  if (!manifest) return;
  static_cast<void>(elastic::parse_manifest(elastic::format_manifest(*manifest), "again").value());
  const auto section = std::as_bytes(std::span(input.substr(end + 1)));
  elastic::SectionSource source;
  source.sections.assign(manifest->sections.size(), section);
  use_models(elastic::read_models(*manifest, source, 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('{')) {
    use_parts(input);
  } else {
    use_models(elastic::read_models_unchecked(std::as_bytes(std::span(input))));
  }
  return 0;
}
