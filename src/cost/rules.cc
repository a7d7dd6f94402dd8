#include "cost/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cost/convolution_shape.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/passes.h"

namespace fleetfit::cost {
namespace {

using core::JsonView;

constexpr std::string_view kFormat = "fleetfit-kernel-rules";
constexpr std::int64_t kVersion = 1;

/// "Activation" stands for all of them.
std::set<std::string> expanded(const std::vector<std::string>& types) {
  std::set<std::string> all;
  for (const auto& type : types) {
    if (type != "Activation") {
      all.insert(type);
      continue;
    }
    for (const auto name : graph::activation_names()) all.emplace(name);
  }
  return all;
}

Status check_kind(std::string_view text) {
  if (std::ranges::find(kernel_kinds(), text) != kernel_kinds().end()) return {};
  return refuse(fmt::format("there is no kind of kernel '{}'", text));
}

Status read_types(const JsonView& view, std::set<std::string>& types) {
  FLEETFIT_ASSIGN(const auto texts, view.as_texts());
  types = expanded(texts);
  return {};
}

Status read_families(const JsonView& view, std::set<std::string>& families) {
  FLEETFIT_ASSIGN(const auto texts, view.as_texts());
  families = {texts.begin(), texts.end()};
  return {};
}

Status read_kinds(const JsonView& view, std::set<std::string>& kinds) {
  FLEETFIT_ASSIGN(const auto texts, view.as_texts());
  for (const auto& text : texts) {
    if (auto known = check_kind(text); !known) return view.error(known.error().message);
    kinds.insert(text);
  }
  return {};
}

/// A field that may be missing, read into its member by a function.
template <auto member, auto read>
constexpr core::Field read_field(std::string_view name) {
  core::Field field{.name = name, .is_optional = true};
  field.read = [](const JsonView& view, void* record) {
    return read(view, core::MemberOf<member>::of(record));
  };
  return field;
}

template <auto member>
constexpr core::Field types_field(std::string_view name) {
  return read_field<member, read_types>(name);
}

Status read_bounds(const JsonView& view, std::vector<Bound>& bounds) {
  FLEETFIT_ASSIGN(const auto members, view.members());
  for (const auto& [quantity, json] : members) {
    const auto names = quantity_names();
    if (std::ranges::find(names, quantity) == names.end()) {
      return json.error(
          fmt::format("there is no quantity '{}'; there are {}", quantity, fmt::join(names, ", ")));
    }
    FLEETFIT_ASSIGN(auto bound, core::read<Bound>(json));
    bound.quantity = quantity;
    bounds.push_back(std::move(bound));
  }
  return {};
}

Status read_targets(const JsonView& view, std::map<std::string, std::string>& targets) {
  FLEETFIT_ASSIGN(const auto members, view.members());
  for (const auto& member : members) {
    FLEETFIT_ASSIGN(auto family, member.value.as_text());
    targets.emplace(member.key, std::move(family));
  }
  return {};
}

Status check_passes(const JsonView& view, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const bool known =
        name == kQuantizedTensors || name == kQuantizedActivations ||
        std::ranges::any_of(graph::passes(), [&](const auto& pass) { return pass.name == name; });
    if (!known) return view.error(fmt::format("prepare: there is no pass '{}'", name));
  }
  return {};
}

Status check_types(const JsonView& view, const std::vector<FuseRule>& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (rules[i].types.empty()) return view.error(fmt::format("fuse[{}]: names no types", i));
  return {};
}

Status check_families(const JsonView& view, const KernelRuleData& data) {
  std::set<std::string> known;
  for (const auto& [target, family] : data.targets) known.insert(family);
  const auto check = [&](const auto& rules) -> Status {
    for (const auto& rule : rules) {
      for (const auto& family : rule.families) {
        if (!known.contains(family)) {
          return view.error(fmt::format("no target is of the family '{}'", family));
        }
      }
    }
    return {};
  };
  FLEETFIT_TRY(check(data.fuse));
  return check(data.select);
}

Status check_version(const JsonView& view) {
  FLEETFIT_ASSIGN(const auto format, view.text("format"));
  if (format != kFormat) {
    return view.error(fmt::format("its format is '{}', not '{}'", format, kFormat));
  }
  FLEETFIT_ASSIGN(const auto version, view.integer("version", {.min = 1}));
  if (version <= kVersion) return {};
  return view.error(
      fmt::format("its version is {}; this program reads up to {}", version, kVersion));
}

Result<KernelRuleData> read_data(const JsonView& view) {
  FLEETFIT_TRY(check_version(view));
  FLEETFIT_ASSIGN(auto data, core::read<KernelRuleData>(view));
  FLEETFIT_TRY(check_passes(view, data.prepare));
  FLEETFIT_TRY(check_types(view, data.fuse));
  FLEETFIT_TRY(check_families(view, data));
  return data;
}

}  // namespace

core::Names names_of(Along) {
  static constexpr core::Name kAll[] = {{Along::first, "first"},
                                        {Along::latest, "latest"},
                                        {Along::each, "each"},
                                        {Along::any, "any"}};
  return {.what = "way to fuse", .all = kAll};
}

core::Names names_of(Condition) {
  static constexpr core::Name kAll[] = {
      {Condition::inputs_ready, "inputs_ready"},
      {Condition::same_shape, "same_shape"},
      {Condition::constant_channel_operand, "constant_channel_operand"},
      {Condition::constant_weights, "constant_weights"},
      {Condition::not_activated, "not_activated"},
      {Condition::other_dies, "other_dies"},
      {Condition::other_not_read, "other_not_read"},
      {Condition::channel_axis, "channel_axis"},
      {Condition::same_storage, "same_storage"},
      {Condition::float_only, "float_only"},
      {Condition::not_grouped, "not_grouped"},
      {Condition::relu_follows, "relu_follows"},
  };
  return {.what = "condition", .all = kAll};
}

core::Fields fields_of(const FuseRule*) {
  static constexpr core::Field kAll[] = {core::other_field("comment"),
                                         types_field<&FuseRule::types>("types"),
                                         types_field<&FuseRule::into>("into"),
                                         types_field<&FuseRule::after>("after"),
                                         read_field<&FuseRule::families, read_families>("families"),
                                         core::field<&FuseRule::along>("along").may_be_missing(),
                                         core::field<&FuseRule::when>("when").may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const Bound*) {
  static constexpr core::Field kAll[] = {core::field<&Bound::is>("is").from(0),
                                         core::field<&Bound::at_least>("at_least").from(0),
                                         core::field<&Bound::at_most>("at_most").from(0),
                                         core::field<&Bound::multiple_of>("multiple_of").from(1)};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const SelectRule*) {
  static constexpr core::Field kAll[] = {
      core::other_field("comment"), core::field<&SelectRule::kind>("kind").checked(check_kind),
      read_field<&SelectRule::of, read_kinds>("of"),
      read_field<&SelectRule::families, read_families>("families"),
      read_field<&SelectRule::when, read_bounds>("when")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const BlockRules*) {
  static constexpr core::Field kAll[] = {core::other_field("comment"),
                                         core::field<&BlockRules::channels>("channels").from(1),
                                         types_field<&BlockRules::follow>("follow")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const KernelRuleData*) {
  static constexpr core::Field kAll[] = {
      core::other_field("format"),
      core::other_field("version"),
      core::field<&KernelRuleData::name>("name"),
      core::other_field("description"),
      read_field<&KernelRuleData::targets, read_targets>("targets"),
      core::field<&KernelRuleData::prepare>("prepare").may_be_missing(),
      types_field<&KernelRuleData::free>("free"),
      types_field<&KernelRuleData::unpacked>("unpacked"),
      core::field<&KernelRuleData::blocks>("blocks").may_be_missing(),
      core::field<&KernelRuleData::fuse>("fuse").may_be_missing(),
      core::field<&KernelRuleData::select>("select").may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

KernelRules::KernelRules(std::shared_ptr<const KernelRuleData> data) : data_(std::move(data)) {}

Result<KernelRules> KernelRules::parse(std::string_view text, const std::string& file_name) {
  FLEETFIT_ASSIGN(const auto document, core::parse_json(text, file_name));
  FLEETFIT_ASSIGN(auto data, read_data(JsonView(document, file_name)));
  return KernelRules(std::make_shared<const KernelRuleData>(std::move(data)));
}

Result<KernelRules> KernelRules::read(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto text, core::read_file(file));
  return parse(text, file.string());
}

Result<KernelRules> KernelRules::builtin(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& rules : builtin_rules()) {
    if (rules.name == name) return parse(rules.text, std::string(name) + ".json");
    names.push_back(rules.name);
  }
  return fail(ErrorCode::not_found, fmt::format("there are no kernel rules '{}'; there are {}",
                                                name, fmt::join(names, ", ")));
}

Result<KernelRules> KernelRules::named(std::string_view name) {
  if (name.empty()) name = "plain";
  const auto colon = name.rfind(':');
  const auto set = name.substr(0, colon);
  auto rules = std::filesystem::path(set).extension() == ".json" ? read(set) : builtin(set);
  if (!rules || colon == std::string_view::npos) return rules;
  return rules->for_target(name.substr(colon + 1));
}

const std::string& KernelRules::name() const { return data_->name; }

std::vector<std::string> KernelRules::targets() const {
  std::vector<std::string> names;
  for (const auto& [target, family] : data_->targets) names.push_back(target);
  return names;
}

Result<KernelRules> KernelRules::for_target(std::string_view target) const {
  const auto found = data_->targets.find(std::string(target));
  if (found == data_->targets.end()) {
    return fail(ErrorCode::not_found,
                fmt::format("the kernel rules '{}' know no '{}'; they know {}", name(), target,
                            targets().empty() ? "no targets"
                                              : fmt::format("{}", fmt::join(targets(), ", "))));
  }
  KernelRules chosen = *this;
  chosen.family_ = found->second;
  return chosen;
}

}  // namespace fleetfit::cost
