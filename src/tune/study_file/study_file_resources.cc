#include <algorithm>

#include "tune/study_file/study_file.h"

namespace fleetfit::tune {
namespace {

Result<std::optional<std::int64_t>> read_optional_count(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto count, read_count(view));
  return std::optional(count);
}

// Stands in a line of a batch script.
Result<std::string> read_line(const YamlView& view) {
  FLEETFIT_ASSIGN(auto text, view.as_text());
  const auto is_odd = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (text.empty() || std::ranges::any_of(text, is_odd)) return view.error("expected one word");
  return text;
}

}  // namespace

Result<Resources> read_resources(const YamlView& view) {
  Resources resources;
  Status good = first_error({view.allow_only({"cores", "memory", "gpus", "time_min", "partition",
                                              "constraint", "account"}),
                             read_field(view, "cores", resources.cores, read_optional_count),
                             read_field(view, "memory", resources.memory_bytes, read_bytes),
                             read_field(view, "gpus", resources.gpus, read_optional_count),
                             read_field(view, "time_min", resources.time_min, read_optional_count),
                             read_field(view, "partition", resources.partition, read_line),
                             read_field(view, "constraint", resources.constraint, read_line),
                             read_field(view, "account", resources.account, read_line)});
  FLEETFIT_TRY(good);
  return resources;
}

}  // namespace fleetfit::tune
