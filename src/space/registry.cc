#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "fleetfit/space/space.h"
#include "space/all_spaces.h"

namespace fleetfit::space {

std::span<const std::unique_ptr<const Space>> spaces() {
  static const std::array<std::unique_ptr<const Space>, 7> kSpaces = {
      make_fbnet(),       make_icpe(),     make_mobilenetv2(), make_mobilenetv3(),
      make_nasbench201(), make_ofa_mbv3(), make_proxylessnas()};
  return kSpaces;
}

Result<const Space*> find_space(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& space : spaces()) {
    if (space->name() == name) return space.get();
    names.push_back(space->name());
  }
  return fail(ErrorCode::not_found,
              fmt::format("there is no space '{}'; there are {}", name, fmt::join(names, ", ")));
}

}  // namespace fleetfit::space
