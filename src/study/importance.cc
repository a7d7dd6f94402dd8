#include "study/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fleetfit/core/statistics.h"

namespace fleetfit::study {
namespace {

constexpr std::size_t kFewest = 10;        // trials that say anything
constexpr std::size_t kMostGroups = 8;     // of a range
constexpr std::size_t kGroupSize = 5;      // trials at least, of a range
constexpr std::size_t kEnoughTrials = 30;  // a higher level with so many is preferred

/// A trial's objective at a level.
struct Outcome {
  const SeenTrial* seen = nullptr;
  tune::Budget budget = {};
  double value = 0;
};

using Outcomes = std::vector<Outcome>;

Outcomes outcomes_at_one_level(const tune::Study& study, std::span<const SeenTrial> trials) {
  std::map<std::size_t, Outcomes> levels;
  for (const auto& seen : trials) {
    for (const auto& result : seen.trial.results) {
      const auto values = tune::objective_values(study, seen.trial, result);
      if (!values || std::isnan(values->front())) continue;
      levels[result.level].push_back({&seen, result.budget, values->front()});
    }
  }
  const Outcomes* chosen = nullptr;
  for (auto at = levels.rbegin(); at != levels.rend(); ++at) {
    if (chosen == nullptr || at->second.size() > chosen->size()) chosen = &at->second;
    if (chosen->size() >= kEnoughTrials) break;
  }
  return chosen == nullptr ? Outcomes() : *chosen;
}

struct Ranked {
  double value = 0;  ///< of the parameter
  double rank = 0;   ///< 1: best
};

/// Neighbours in the order of values that count as one group.
struct ValueGroup {
  double low = 0;
  double high = 0;
  double sum = 0;
  std::size_t size = 0;

  double mean() const { return sum / static_cast<double>(size); }
};

/// `items` are in the order of values; equal values are never parted.
std::vector<ValueGroup> groups_of(std::span<const Ranked> items, std::size_t least) {
  std::vector<ValueGroup> groups;
  for (const auto& [value, rank] : items) {
    const bool is_new =
        groups.empty() || (groups.back().size >= least && value != groups.back().high);
    if (is_new) groups.push_back({.low = value, .high = value});
    groups.back().high = value;
    groups.back().sum += rank;
    ++groups.back().size;
  }
  if (groups.size() > 1 && groups.back().size < least) {
    const auto last = groups.back();
    groups.pop_back();
    groups.back().high = last.high;
    groups.back().sum += last.sum;
    groups.back().size += last.size;
  }
  return groups;
}

double explained(std::span<const Ranked> items, std::span<const ValueGroup> groups) {
  const auto n = static_cast<double>(items.size());
  const auto k = static_cast<double>(groups.size());
  double mean = 0;
  for (const auto& item : items) mean += item.rank / n;
  double all = 0;
  for (const auto& item : items) all += std::pow(item.rank - mean, 2);
  double between = 0;
  for (const auto& group : groups)
    between += static_cast<double>(group.size) * std::pow(group.mean() - mean, 2);
  if (!(all > 0) || groups.size() < 2 || n <= k) return 0;
  const double inside = (all - between) / (n - k);
  return std::clamp(1 - inside / (all / (n - 1)), 0.0, 1.0);
}

std::string text_of(const tune::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  return fmt::format("{:g}", std::get<double>(value));
}

std::string values_text(const tune::Parameter& parameter, const ValueGroup& group) {
  if (parameter.is_choice()) return text_of(parameter.values[static_cast<std::size_t>(group.low)]);
  if (group.low == group.high) return fmt::format("{:.3g}", group.low);
  return fmt::format("{:.3g} to {:.3g}", group.low, group.high);
}

ParameterImportance importance_of_one(const tune::Study& study, std::size_t parameter,
                                      const Outcomes& outcomes, std::span<const double> ranks) {
  std::vector<Ranked> items;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const double value = outcomes[i].seen->trial.point[parameter];
    if (!std::isnan(value)) items.push_back({value, ranks[i]});
  }
  ParameterImportance importance{.parameter = parameter, .trials = items.size()};
  if (items.size() < kFewest) return importance;
  std::ranges::stable_sort(items, {}, &Ranked::value);
  const auto& what = study.parameters.all()[parameter];
  const auto least =
      what.is_choice() ? 1 : std::max(kGroupSize, (items.size() + kMostGroups - 1) / kMostGroups);
  const auto groups = groups_of(items, least);
  importance.share = explained(items, groups);
  importance.best_at = values_text(what, *std::ranges::min_element(groups, {}, &ValueGroup::mean));
  return importance;
}

}  // namespace

ImportanceReport importance_of(const tune::Study& study, std::span<const SeenTrial> trials) {
  const auto outcomes = outcomes_at_one_level(study, trials);
  ImportanceReport report{.trials = outcomes.size()};
  if (outcomes.size() < kFewest) return report;
  report.budget = outcomes.front().budget;
  std::vector<double> values;
  for (const auto& outcome : outcomes) values.push_back(outcome.value);
  const auto ranks = core::ranks(values);
  if (!ranks) return report;
  for (std::size_t p = 0; p < study.parameters.size(); ++p)
    report.parameters.push_back(importance_of_one(study, p, outcomes, *ranks));
  std::ranges::stable_sort(report.parameters, std::ranges::greater(), &ParameterImportance::share);
  return report;
}

}  // namespace fleetfit::study
