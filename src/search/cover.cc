#include "fleetfit/search/cover.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

namespace fleetfit::search {
namespace {

constexpr std::size_t kMostSteps = 2'000'000;

using Things = std::vector<bool>;

struct Option {
  std::size_t place;
  const Serving* serving;
};

bool is_part_of(const Things& a, const Things& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] && !b[i]) return false;
  return true;
}

/// Those for which no other serves the same things and more, or is worth more.
std::vector<Option> worth_looking_at(const std::vector<Serving>& all) {
  std::map<Things, std::size_t> by_things;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [at, is_new] = by_things.emplace(all[i].serves, i);
    if (!is_new && all[i].worth > all[at->second].worth) at->second = i;
  }
  std::vector<Option> options;
  for (const auto& [things, place] : by_things) {
    const bool beaten = std::ranges::any_of(by_things, [&](const auto& other) {
      return other.second != place && all[other.second].worth >= all[place].worth &&
             is_part_of(things, other.first);
    });
    if (!beaten) options.push_back({place, &all[place]});
  }
  return options;
}

class Cover {
 public:
  Cover(std::vector<Option> options, std::size_t things)
      : options_(std::move(options)), open_(things) {
    for (std::size_t thing = 0; thing < things; ++thing)
      open_[thing] = std::ranges::any_of(
          options_, [thing](const Option& option) { return option.serving->serves[thing]; });
  }

  std::vector<std::size_t> greedy() const {
    std::vector<std::size_t> taken;
    Things open = open_;
    while (std::ranges::find(open, true) != open.end()) {
      const auto best = std::ranges::max_element(options_, {}, [&](const Option& option) {
        return std::pair(newly_served(option, open), option.serving->worth);
      });
      taken.push_back(best->place);
      for (std::size_t i = 0; i < open.size(); ++i)
        if (best->serving->serves[i]) open[i] = false;
    }
    return taken;
  }

  /// Nothing if it takes too long.
  std::optional<std::vector<std::size_t>> exact(std::size_t at_most) {
    for (std::size_t count = 0; count <= at_most && steps_ < kMostSteps; ++count) {
      taken_.clear();
      extend(open_, count, 0);
      if (steps_ < kMostSteps && found_) return best_;
    }
    return std::nullopt;
  }

 private:
  static std::size_t newly_served(const Option& option, const Things& open) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (open[i] && option.serving->serves[i]) ++count;
    return count;
  }

  /// The thing for which there is the smallest choice.
  std::optional<std::size_t> hardest(const Things& open) const {
    std::optional<std::size_t> hardest;
    std::size_t fewest = options_.size() + 1;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (!open[i]) continue;
      const auto count = static_cast<std::size_t>(std::ranges::count_if(
          options_, [i](const Option& option) { return option.serving->serves[i]; }));
      if (count < fewest) {
        fewest = count;
        hardest = i;
      }
    }
    return hardest;
  }

  void extend(const Things& open, std::size_t left, double worth) {
    if (++steps_ >= kMostSteps) return;
    const auto thing = hardest(open);
    if (!thing) {
      if (!found_ || worth > worth_) {
        found_ = true;
        worth_ = worth;
        best_ = taken_;
      }
      return;
    }
    if (left == 0) return;
    for (const auto& option : options_) {
      if (!option.serving->serves[*thing]) continue;
      Things rest = open;
      for (std::size_t i = 0; i < rest.size(); ++i)
        if (option.serving->serves[i]) rest[i] = false;
      taken_.push_back(option.place);
      extend(rest, left - 1, worth + option.serving->worth);
      taken_.pop_back();
    }
  }

  std::vector<Option> options_;
  Things open_;
  std::vector<std::size_t> taken_;
  std::vector<std::size_t> best_;
  double worth_ = 0;
  bool found_ = false;
  std::size_t steps_ = 0;
};

}  // namespace

std::vector<std::size_t> fewest_that_serve_all(const std::vector<Serving>& all) {
  if (all.empty()) return {};
  Cover cover(worth_looking_at(all), all.front().serves.size());
  auto taken = cover.greedy();
  if (auto exact = cover.exact(taken.size())) taken = *std::move(exact);
  std::ranges::sort(taken);
  return taken;
}

}  // namespace fleetfit::search
