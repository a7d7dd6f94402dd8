#include "app/elastic/judging_subnets.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace fleetfit::app {
namespace {

class Judging {
 public:
  Judging(const JudgeParts& parts, const adapt::SearchedSubnets& searched, AdaptReport& report)
      : parts_(parts),
        request_(parts.request),
        space_(parts.space),
        searched_(searched),
        report_(report) {}

  Status run() {
    const adapt::FinalistOptions few{.near = 3, .levels = 6};
    const auto chosen = adapt::finalists(searched_, request_.budget_ms,
                                         searched_.stopped ? few : adapt::FinalistOptions{});
    std::set<std::size_t> numbers(chosen.near.begin(), chosen.near.end());
    numbers.insert(chosen.levels.begin(), chosen.levels.end());
    for (const std::size_t i : numbers)
      judged_.push_back({.subnet = space_.format(searched_.subnets[i].design)});
    if (!request_.compare.empty()) judged_.push_back({.subnet = request_.compare});
    FLEETFIT_TRY(time_judged());
    std::vector<std::size_t> within;
    std::vector<std::size_t> levels;
    for (std::size_t place = 0; const std::size_t i : numbers) {
      const bool near = std::ranges::find(chosen.near, i) != chosen.near.end();
      const bool keeps = judged_[place].latency_ms <= request_.budget_ms;
      if (near && keeps) within.push_back(place);
      if (std::ranges::find(chosen.levels, i) != chosen.levels.end()) levels.push_back(place);
      ++place;
    }
    return choose(within, levels);
  }

 private:
  Status time_judged() {
    std::vector<graph::Graph> networks;
    for (const auto& subnet : judged_) {
      FLEETFIT_ASSIGN(auto network, space_.lower(space_.parse(subnet.subnet).value()));
      networks.push_back(std::move(network));
    }
    FLEETFIT_ASSIGN(const auto times, parts_.timer.time_in_turns(networks));
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      judged_[i].latency_ms = times[i].ms;
      judged_[i].measured = true;
    }
    const auto fastest = std::ranges::min_element(judged_, {}, &adapt::JudgedSubnet::latency_ms);
    if (fastest->latency_ms < report_.fastest.latency_ms)
      report_.fastest = {.subnet = fastest->subnet, .latency_ms = fastest->latency_ms};
    return {};
  }

  /// If none of those near the budget keeps it, any other that does.
  Status choose(std::vector<std::size_t> within, std::vector<std::size_t> levels) {
    if (within.empty())
      std::ranges::copy_if(levels, std::back_inserter(within), [&](std::size_t i) {
        return judged_[i].latency_ms <= request_.budget_ms;
      });
    if (within.empty()) return {};
    FLEETFIT_ASSIGN(const auto choice,
                    evaluate_on(*choice_images(), within, report_.choice_images));
    std::vector<adapt::JudgedSubnet> candidates;
    for (std::size_t i = 0; i < within.size(); ++i) {
      candidates.push_back(judged_[within[i]]);
      candidates.back().choice = choice[i].score();
    }
    const std::size_t best = within[*adapt::choose_best(candidates, request_.budget_ms)];
    std::erase(levels, best);
    levels.insert(levels.begin(), best);
    return fill_pool(levels);
  }

  /// `places` begins with the best.
  Status fill_pool(std::vector<std::size_t> places) {
    if (!request_.compare.empty()) places.push_back(judged_.size() - 1);
    FLEETFIT_ASSIGN(const auto accuracy,
                    evaluate_on(*parts_.test.part(0, request_.test), places, report_.test_images));
    std::vector<adapt::JudgedSubnet> members;
    for (std::size_t i = 0; i < places.size(); ++i) {
      members.push_back(judged_[places[i]]);
      members.back().accuracy = accuracy[i].accuracy;
    }
    if (!request_.compare.empty()) {
      const auto& other = members.back();
      report_.compared = AdaptedSubnet{other.subnet, other.latency_ms, other.accuracy};
      members.pop_back();
    }
    report_.best = AdaptedSubnet{members[0].subnet, members[0].latency_ms, members[0].accuracy};
    report_.pool = adapt::pool_entries(members, 0);
    return {};
  }

  /// Other images of the device, or the same and more where there are few others.
  std::unique_ptr<adapt::ImageBatches> choice_images() const {
    auto others = parts_.validation.part(request_.samples, request_.choice);
    if (others->images() >= request_.samples) return others;
    return parts_.validation.part(0, std::max(request_.choice, request_.samples));
  }

  Result<std::vector<adapt::Evaluation>> evaluate_on(const adapt::ImageBatches& images,
                                                     const std::vector<std::size_t>& places,
                                                     std::size_t& count) {
    count = images.images();
    space::Population designs(space_.genes().size());
    for (const std::size_t i : places) designs.add(space_.parse(judged_[i].subnet).value());
    FLEETFIT_ASSIGN(const auto quality, parts_.evaluator(images));
    return quality->evaluate(designs);
  }

  const JudgeParts& parts_;
  const AdaptRequest& request_;
  const elastic::SubnetSpace& space_;
  const adapt::SearchedSubnets& searched_;
  AdaptReport& report_;
  std::vector<adapt::JudgedSubnet> judged_;
};

}  // namespace

Status judge_subnets(const JudgeParts& parts, const adapt::SearchedSubnets& searched,
                     AdaptReport& report) {
  return Judging(parts, searched, report).run();
}

}  // namespace fleetfit::app
