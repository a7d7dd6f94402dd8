#include "fleetfit/app/kernels.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/devices/kernel_choices.h"
#include "app/devices/opened_device.h"
#include "app/models/model_files.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/import.h"

namespace fleetfit::app {
namespace {

constexpr int kProfiledRuns = 3;

Result<cost::KernelRules> rules_of(const KernelsRequest& request) {
  return cost::KernelRules::named(
      request.target.empty() ? request.rules : fmt::format("{}:{}", request.rules, request.target));
}

std::vector<std::string> names_of(const graph::Graph& graph, const std::vector<int>& nodes) {
  std::vector<std::string> names;
  for (const int index : nodes) names.push_back(graph.nodes[static_cast<std::size_t>(index)].name);
  return names;
}

KernelsSummary summary_of(const graph::Graph& graph, const cost::KernelPlan& plan,
                          const KernelsRequest& request) {
  KernelsSummary summary{.rules = request.rules,
                         .target = request.target,
                         .before_fusion = plan.before_fusion,
                         .after_fusion = static_cast<int>(plan.kernels.size())};
  for (const auto& kernel : plan.kernels) {
    summary.kernels.push_back({kernel.kind, names_of(graph, kernel.nodes), kernel.reordered_size});
  }
  return summary;
}

/// Rules for the runtime of a device, where none were asked for.
Status choose_rules(KernelsRequest& request, const measure::Device& device) {
  if (!request.rules.empty()) return {};
  request.rules = rules_of_device(device);
  if (!request.rules.empty()) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("no kernel rules are known for the runtime '{}' of the device '{}'; "
                          "--rules gives some",
                          device.runtime, device.name));
}

Result<std::vector<cost::ProfileEntry>> profile_on(Workplace& workplace, const OpenedDevice& device,
                                                   const std::filesystem::path& model) {
  auto load = load_options(device.device);
  FLEETFIT_ASSIGN(load.known_choices, KernelChoices(workplace).known(device.device));
  if (auto ok = device.runtime().load(model, load); !ok) {
    return tl::unexpected(ok.error());
  }
  FLEETFIT_ASSIGN(const auto times, device.runtime().run(kProfiledRuns, true));
  if (times.operators.empty()) {
    return fail(ErrorCode::unsupported,
                fmt::format("the device '{}' does not report its kernels", device.device.name));
  }
  std::vector<cost::ProfileEntry> entries;
  for (const auto& op : times.operators) entries.push_back({op.name, op.type, op.kernel, op.ms});
  return entries;
}

void compare(const graph::Graph& graph, const cost::KernelPlan& plan,
             const std::vector<cost::ProfileEntry>& profile, KernelsCheck& check) {
  const auto matched = cost::match_profile(graph, profile);
  const auto comparison = cost::compare_kernels(plan.kernels, matched.kernels);
  check.ran = comparison.ran;
  check.alike = comparison.alike;
  for (const auto& entry : profile) check.ms += entry.ms;
  for (const auto k : comparison.ran_alike) check.alike_ms += matched.kernels[k].ms;
  for (const auto& difference : comparison.differences) {
    KernelDifference named{.deduced = names_of(graph, difference.deduced)};
    for (const auto& nodes : difference.ran) named.ran.push_back(names_of(graph, nodes));
    check.differences.push_back(std::move(named));
  }
  for (const auto& entry : matched.unmatched) {
    check.unmatched.push_back({entry.name, entry.type, entry.ms});
  }
}

}  // namespace

Result<KernelsSummary> list_kernels(const KernelsRequest& request) {
  FLEETFIT_ASSIGN(const auto rules, rules_of(request));
  FLEETFIT_ASSIGN(const auto model,
                  graph::import_model(request.model, import_options(request.options)));
  FLEETFIT_ASSIGN(const auto plan,
                  core::within(request.model.string(), cost::deduce_kernels(model.graph, rules)));
  return summary_of(model.graph, plan, request);
}

Result<KernelsCheck> verify_kernels(Workplace& workplace, const VerifyKernelsRequest& request) {
  FLEETFIT_ASSIGN(auto files, ModelFiles::open(request.kernels.model, request.kernels.options,
                                               request.threads));
  FLEETFIT_ASSIGN(auto device, open_device(workplace, request.device));
  KernelsRequest kernels = request.kernels;
  FLEETFIT_TRY(choose_rules(kernels, device.device));
  FLEETFIT_ASSIGN(const auto rules, rules_of(kernels));
  FLEETFIT_ASSIGN(const auto file, files.for_device(device.device));
  // What the device runs may be another file than the one that was given.
  FLEETFIT_ASSIGN(const auto model,
                  graph::import_model(file.path, import_options(request.kernels.options)));
  FLEETFIT_ASSIGN(const auto plan, core::within(request.kernels.model.string(),
                                                cost::deduce_kernels(model.graph, rules)));
  FLEETFIT_ASSIGN(const auto profile, profile_on(workplace, device, file.path));
  KernelsCheck check{.deduced = summary_of(model.graph, plan, kernels),
                     .device = request.device,
                     .note = file.note};
  compare(model.graph, plan, profile, check);
  return check;
}

core::Fields fields_of(const KernelSummary*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(KernelSummary, kernel, ops),
      core::field<&KernelSummary::reordered_size>("reordered_size").omit_default()};
  return {.all = kAll};
}

core::Fields fields_of(const KernelsSummary*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(KernelsSummary, rules),
      core::field<&KernelsSummary::target>("target").omit_default(),
      FLEETFIT_MEMBERS(KernelsSummary, kernels, before_fusion, after_fusion)};
  return {.all = kAll};
}

FLEETFIT_REPORT(KernelDifference, deduced, ran)
FLEETFIT_REPORT(UnmatchedEntry, name, type, ms)

core::Fields fields_of(const KernelsCheck*) {
  using Check = KernelsCheck;
  static constexpr core::Field kAll[] = {
      core::field<&Check::deduced>("deduced").inlined(), FLEETFIT_MEMBERS(Check, device),
      core::computed<&Check::pass>("pass"),
      FLEETFIT_MEMBERS(Check, ran, alike, ms, alike_ms, differences, unmatched),
      core::field<&Check::note>("note").omit_default()};
  return {.all = kAll};
}

std::vector<std::string> list_kernel_rules() {
  std::vector<std::string> names;
  for (const auto& rules : cost::builtin_rules()) names.emplace_back(rules.name);
  return names;
}

}  // namespace fleetfit::app
