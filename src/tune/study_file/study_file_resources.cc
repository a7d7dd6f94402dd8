#include <algorithm>

#include "fleetfit/core/fields.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/tune/resources.h"

namespace fleetfit::tune {
namespace {

// Stands in a line of a batch script.
Result<std::string> parse_word(std::string_view text) {
  const auto is_odd = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (text.empty() || std::ranges::any_of(text, is_odd)) return core::refuse("expected one word");
  return std::string(text);
}

}  // namespace

core::Fields fields_of(const Resources*) {
  static constexpr core::Field kAll[] = {
      core::field<&Resources::cores>("cores").between(1, 1e9),
      core::parsed_field<&Resources::memory_bytes, measure::parse_bytes>("memory").may_be_missing(),
      core::field<&Resources::gpus>("gpus").between(1, 1e9),
      core::field<&Resources::time_min>("time_min").between(1, 1e9),
      core::parsed_field<&Resources::partition, parse_word>("partition").may_be_missing(),
      core::parsed_field<&Resources::constraint, parse_word>("constraint").may_be_missing(),
      core::parsed_field<&Resources::account, parse_word>("account").may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

}  // namespace fleetfit::tune
