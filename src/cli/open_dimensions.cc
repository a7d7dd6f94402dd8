#include "cli/open_dimensions.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

namespace fleetfit::cli {

void add_open_dimension_flags(CLI::App& verb, OpenDimensionFlags& flags) {
  verb.add_option("--dim", flags.dimensions,
                  "Extent of a dimension that the file leaves open, by name")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  verb.add_option("--batch", flags.batch, "Extent of an open batch dimension")
      ->check(CLI::Range(1, 1 << 20));
}

Result<app::ModelOptions> model_options(const OpenDimensionFlags& flags) {
  app::ModelOptions options{.dimensions = {}, .batch = flags.batch};
  for (const auto& text : flags.dimensions) {
    const auto equals = text.rfind('=');
    std::int64_t extent = 0;
    const char* end = text.data() + text.size();
    const bool named = equals != std::string::npos && equals > 0;
    const auto parsed =
        named ? std::from_chars(text.data() + equals + 1, end, extent) : std::from_chars_result{};
    if (!named || parsed.ec != std::errc() || parsed.ptr != end || extent < 1) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("--dim {}: expected NAME=N with a positive whole number", text));
    }
    options.dimensions[text.substr(0, equals)] = extent;
  }
  return options;
}

}  // namespace fleetfit::cli
