#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/workloads/workloads.h"
#include "tune/study_file/study_file.h"

namespace fleetfit::tune {
namespace {

Status check_names(const YamlView& group, const workloads::Workload& workload) {
  if (!group.is_map()) return {};
  FLEETFIT_ASSIGN(const auto members, group.members());
  for (const auto& [name, value] : members) {
    const auto& settings = workload.settings;
    if (std::ranges::find(settings, name, &workloads::Setting::name) == settings.end())
      return value.error(
          fmt::format("{} takes no such parameter; 'fleetfit workload show {}' "
                      "lists them",
                      workload.name, workload.name));
  }
  return {};
}

}  // namespace

Status check_builtin(const YamlView& study, const Workload& workload) {
  if (workload.builtin.empty()) return {};
  const auto known = workloads::find_workload(workload.builtin);
  if (!known) {
    const auto place = study.at("workload");
    const auto name = place ? place->at("builtin") : place;
    return name ? name->error(known.error().message) : study.error(known.error().message);
  }
  FLEETFIT_ASSIGN(const auto groups, study.at("parameters"));
  FLEETFIT_ASSIGN(const auto members, groups.members());
  for (const auto& group : members) FLEETFIT_TRY(check_names(group.value, **known));
  return {};
}

}  // namespace fleetfit::tune
