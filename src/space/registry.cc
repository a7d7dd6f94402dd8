#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "fleetfit/space/space.h"
#include "space/all_spaces.h"

namespace fleetfit::space {
namespace {

std::optional<Policies> policies_named(std::string_view text) {
  for (const bool precision : {false, true}) {
    for (const bool pruning : {false, true}) {
      const auto name = std::string(precision ? "+precision" : "") + (pruning ? "+pruning" : "");
      if (text == name) return Policies{.precision = precision, .pruning = pruning};
    }
  }
  return std::nullopt;
}

/// Made when somebody first asks for it, and kept.
const Space* with_policies(std::string_view name, const Space& base, const Policies& policies) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Space>, std::less<>> made;
  const std::scoped_lock lock(mutex);
  const auto known = made.find(name);
  if (known != made.end()) return known->second.get();
  return made.emplace(name, make_policy_space(base, policies)).first->second.get();
}

}  // namespace

std::span<const std::unique_ptr<const Space>> spaces() {
  static const std::array<std::unique_ptr<const Space>, 7> kSpaces = {
      make_fbnet(),       make_icpe(),     make_mobilenetv2(), make_mobilenetv3(),
      make_nasbench201(), make_ofa_mbv3(), make_proxylessnas()};
  return kSpaces;
}

Result<const Space*> find_space(std::string_view name) {
  const auto plus = std::min(name.find('+'), name.size());
  const auto policies = policies_named(name.substr(plus));
  std::vector<std::string_view> names;
  for (const auto& space : spaces()) {
    const bool is_it = space->name() == name.substr(0, plus);
    if (is_it && policies)
      return *policies == Policies{} ? space.get() : with_policies(name, *space, *policies);
    names.push_back(space->name());
  }
  return fail(ErrorCode::not_found,
              fmt::format("there is no space '{}'; there are {}, each also with +precision, "
                          "+pruning or +precision+pruning behind it",
                          name, fmt::join(names, ", ")));
}

Result<Population> sample_designs(const Space& space, const SampleOptions& options) {
  const auto there_are = space.size().exact();
  if (there_are && (options.first > *there_are || options.count > *there_are - options.first)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("the space {} has {} designs, {} from number {} on were asked for",
                            space.name(), *there_are, options.count, options.first));
  }
  // Candidates have a stream each; those that were drawn before are passed over.
  const auto streams = core::Random(options.seed).split(space.name());
  const std::size_t genes = space.genes().size();
  Population designs(genes);
  std::set<std::vector<Choice>> seen;
  std::vector<Choice> design(genes);
  for (std::uint64_t candidate = 0; designs.size() < options.count; ++candidate) {
    auto random = streams.split(candidate);
    space.sample(random, design);
    if (seen.insert(design).second && seen.size() > options.first) designs.add(design);
  }
  return designs;
}

Gene amounts(std::string name, std::string_view prefix, std::span<const std::int64_t> values,
             std::string before) {
  Gene gene{.name = std::move(name), .before = std::move(before)};
  for (const auto value : values) {
    gene.choices.push_back(fmt::format("{}{}", prefix, value));
    gene.values.push_back(static_cast<double>(value));
  }
  return gene;
}

}  // namespace fleetfit::space
