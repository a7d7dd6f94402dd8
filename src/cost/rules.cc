#include "cost/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "cost/quantities.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/passes.h"

namespace fleetfit::cost {
namespace {

using core::JsonView;

constexpr std::string_view kFormat = "fleetfit-kernel-rules";
constexpr std::int64_t kVersion = 1;

constexpr std::array<std::pair<std::string_view, Along>, 4> kAlong{{
    {"first", Along::first},
    {"latest", Along::latest},
    {"each", Along::each},
    {"any", Along::any},
}};

constexpr std::array<std::pair<std::string_view, Condition>, 12> kConditions{{
    {"inputs_ready", Condition::inputs_ready},
    {"same_shape", Condition::same_shape},
    {"constant_channel_operand", Condition::constant_channel_operand},
    {"constant_weights", Condition::constant_weights},
    {"not_activated", Condition::not_activated},
    {"other_dies", Condition::other_dies},
    {"other_not_read", Condition::other_not_read},
    {"channel_axis", Condition::channel_axis},
    {"same_storage", Condition::same_storage},
    {"float_only", Condition::float_only},
    {"not_grouped", Condition::not_grouped},
    {"relu_follows", Condition::relu_follows},
}};

/// One of a list of words, and what it stands for.
template <class Value, std::size_t n>
Result<Value> word(const JsonView& view,
                   const std::array<std::pair<std::string_view, Value>, n>& words) {
  FLEETFIT_ASSIGN(const auto text, view.as_text());
  std::vector<std::string_view> known;
  for (const auto& [name, value] : words) {
    if (name == text) return value;
    known.push_back(name);
  }
  return view.error(fmt::format("'{}' is none of {}", text, fmt::join(known, ", ")));
}

/// A list of texts that may be missing.
Result<std::vector<std::string>> texts(const JsonView& view, std::string_view key) {
  FLEETFIT_ASSIGN(const auto field, view.find(key));
  if (!field) return std::vector<std::string>();
  return field->as_texts();
}

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

/// Reads fields one after the other and keeps the first mistake.
class Reader {
 public:
  explicit Reader(const JsonView& view) : view_(view) {}

  Reader& only(std::initializer_list<std::string_view> keys) {
    return keep(view_.allow_only(keys));
  }
  Reader& types(std::string_view key, std::set<std::string>& into) {
    auto list = texts(view_, key);
    if (list) into = expanded(*list);
    return keep(list);
  }
  Reader& list(std::string_view key, std::vector<std::string>& into) {
    auto values = texts(view_, key);
    if (values) into = *values;
    return keep(values);
  }
  Reader& set(std::string_view key, std::set<std::string>& into) {
    auto values = texts(view_, key);
    if (values) into = {values->begin(), values->end()};
    return keep(values);
  }
  template <class Value, class Read>
  Reader& each(std::string_view key, std::vector<Value>& into, const Read& read) {
    const auto field = view_.find(key);
    if (!field || !*field) return keep(field);
    const auto items = (*field)->items();
    if (!items) return keep(items);
    for (const auto& item : *items) {
      auto value = read(item);
      if (!value) return keep(value);
      into.push_back(*std::move(value));
    }
    return *this;
  }
  template <class T>
  Reader& keep(const T& result) {
    if (!result && status_) status_ = tl::unexpected(result.error());
    return *this;
  }
  const Status& status() const { return status_; }

 private:
  const JsonView& view_;
  Status status_;
};

Result<FuseRule> read_fuse(const JsonView& view) {
  FuseRule rule;
  Reader reader(view);
  reader.only({"comment", "types", "into", "after", "families", "along", "when"})
      .types("types", rule.types)
      .types("into", rule.into)
      .types("after", rule.after)
      .set("families", rule.families)
      .each("when", rule.when, [](const JsonView& item) { return word(item, kConditions); });
  const auto along = view.find("along");
  if (along && *along) {
    const auto value = word(**along, kAlong);
    if (value) rule.along = *value;
    reader.keep(value);
  }
  FLEETFIT_TRY(reader.status());
  if (rule.types.empty()) return view.error("names no types");
  return rule;
}

Result<std::optional<std::int64_t>> optional_integer(const JsonView& view, std::string_view key) {
  FLEETFIT_ASSIGN(const auto field, view.find(key));
  if (!field) return std::optional<std::int64_t>();
  return field->as_integer({.min = key == "multiple_of" ? 1 : 0}).map([](std::int64_t value) {
    return std::optional(value);
  });
}

Result<Bound> read_bound(const JsonView::Member& member) {
  Bound bound{.quantity = member.key};
  if (!is_quantity(member.key)) {
    return member.value.error(fmt::format("there is no quantity '{}'; there are {}", member.key,
                                          fmt::join(quantity_names(), ", ")));
  }
  if (auto ok = member.value.allow_only({"is", "at_least", "at_most", "multiple_of"}); !ok) {
    return tl::unexpected(ok.error());
  }
  const std::array<std::pair<std::string_view, std::optional<std::int64_t>*>, 4> fields{{
      {"is", &bound.is},
      {"at_least", &bound.at_least},
      {"at_most", &bound.at_most},
      {"multiple_of", &bound.multiple_of},
  }};
  for (const auto& [key, value] : fields) {
    FLEETFIT_ASSIGN(*value, optional_integer(member.value, key));
  }
  return bound;
}

Result<std::vector<Bound>> read_bounds(const JsonView& view) {
  std::vector<Bound> bounds;
  FLEETFIT_ASSIGN(const auto field, view.find("when"));
  if (!field) return bounds;
  FLEETFIT_ASSIGN(const auto members, field->members());
  for (const auto& member : members) {
    FLEETFIT_ASSIGN(auto bound, read_bound(member));
    bounds.push_back(std::move(bound));
  }
  return bounds;
}

bool is_kind(std::string_view text) {
  return std::ranges::find(kernel_kinds(), text) != kernel_kinds().end();
}

Result<SelectRule> read_select(const JsonView& view) {
  SelectRule rule;
  auto kind = view.text("kind");
  auto bounds = read_bounds(view);
  Reader reader(view);
  reader.only({"comment", "kind", "of", "families", "when"})
      .set("of", rule.of)
      .set("families", rule.families)
      .keep(kind)
      .keep(bounds);
  FLEETFIT_TRY(reader.status());
  rule.kind = *std::move(kind);
  rule.when = *std::move(bounds);
  for (const auto& name : rule.of) {
    if (!is_kind(name)) return view.error(fmt::format("there is no kind of kernel '{}'", name));
  }
  if (!is_kind(rule.kind)) {
    return view.error(fmt::format("there is no kind of kernel '{}'", rule.kind));
  }
  return rule;
}

Status read_blocks(const JsonView& view, BlockRules& blocks) {
  FLEETFIT_ASSIGN(const auto field, view.find("blocks"));
  if (!field) return {};
  const auto channels = field->integer("channels", {.min = 1});
  if (channels) blocks.channels = *channels;
  Reader reader(*field);
  return reader.only({"comment", "channels", "follow"})
      .types("follow", blocks.follow)
      .keep(channels)
      .status();
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

Status read_targets(const JsonView& view, KernelRuleData& data) {
  FLEETFIT_ASSIGN(const auto field, view.find("targets"));
  if (!field) return {};
  FLEETFIT_ASSIGN(const auto members, field->members());
  for (const auto& member : members) {
    FLEETFIT_ASSIGN(auto family, member.value.as_text());
    data.targets.emplace(member.key, std::move(family));
  }
  return {};
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
  KernelRuleData data;
  auto name = view.text("name");
  Reader reader(view);
  reader.keep(check_version(view))
      .only({"format", "version", "name", "description", "targets", "prepare", "free", "unpacked",
             "blocks", "fuse", "select"})
      .keep(name)
      .list("prepare", data.prepare)
      .types("free", data.free)
      .types("unpacked", data.unpacked)
      .each("fuse", data.fuse, read_fuse)
      .each("select", data.select, read_select)
      .keep(read_blocks(view, data.blocks))
      .keep(read_targets(view, data));
  FLEETFIT_TRY(reader.status());
  data.name = *std::move(name);
  reader.keep(check_passes(view, data.prepare)).keep(check_families(view, data));
  FLEETFIT_TRY(reader.status());
  return data;
}

}  // namespace

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
