// How good and how quick samplers are; bench/tune_bench.py holds them against Optuna's.
//   tune_bench [--functions FILE] [--set benchmark|other] [--seeds 30]   regrets, as JSON
//   tune_bench --evaluate     values of the functions at points: {"name": [[…], …], …} on stdin
//   tune_bench --overhead     time for telling and suggesting after many observations
// FILE is bench/tune_functions.json. Tables come from $FLEETFIT_SHARED_DATA, else ../shared/data.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/random.h"
#include "fleetfit/tune/sampler.h"
#include "tune_functions.h"

namespace fleetfit::bench {
namespace {

using tune::SamplerKind;

std::filesystem::path data_folder() {
  const char* named = std::getenv("FLEETFIT_SHARED_DATA");
  return named != nullptr ? named : "../shared/data";
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The regret after all evaluations.
double regret(const Function& function, SamplerKind kind, std::uint64_t seed) {
  const auto sampler = tune::make_sampler(function.parameters, {.kind = kind});
  const core::Random root(seed);
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t trial = 0; trial < function.evaluations; ++trial) {
    core::Random random = root.split(trial);
    const tune::Point point = sampler->suggest(trial, {}, random);
    const double value = function.value(point);
    best = std::min(best, value);
    sampler->tell({.trial = trial, .point = point, .values = {value}});
  }
  return best - function.optimum;
}

/// Two levels under asynchronous successive halving: whenever more than one in `kHalving` of those
/// that ended the first level could go on, the best one does.
class Halving {
 public:
  Halving(const Function& function, SamplerKind kind, std::uint64_t seed)
      : function_(function),
        sampler_(tune::make_sampler(function.parameters, {.kind = kind, .levels = 2})),
        root_(seed) {}

  double regret() {
    const double budget = static_cast<double>(function_.evaluations) * function_.levels[1];
    while (spent_ < budget) {
      if ((promoted_ + 1) * kHalving <= trials_) {
        go_on();
      } else {
        start();
      }
    }
    return best_ - function_.optimum;
  }

 private:
  static constexpr std::size_t kHalving = 4;

  void start() {
    core::Random random = root_.split(trials_);
    tune::Point point = sampler_->suggest(trials_, {}, random);
    const double value = function_.low_fidelity(point);
    sampler_->tell({.trial = trials_, .point = point, .level = 0, .values = {value}});
    spent_ += function_.levels[0];
    ++trials_;
    waiting_.emplace(value, std::move(point));
  }

  void go_on() {
    const tune::Point point = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    const double value = function_.value(point);
    sampler_->tell({.trial = trials_, .point = point, .level = 1, .values = {value}});
    spent_ += function_.levels[1] - function_.levels[0];
    best_ = std::min(best_, value);
    ++promoted_;
  }

  const Function& function_;
  std::unique_ptr<tune::Sampler> sampler_;
  core::Random root_;
  std::multimap<double, tune::Point> waiting_;
  std::size_t trials_ = 0;
  std::size_t promoted_ = 0;
  double spent_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

double regret_of(const Function& function, bool is_random, std::uint64_t seed) {
  if (function.levels.empty()) {
    return regret(function, is_random ? SamplerKind::random : SamplerKind::tpe, seed);
  }
  const SamplerKind kind = is_random ? SamplerKind::random : SamplerKind::bohb;
  return Halving(function, kind, seed).regret();
}

nlohmann::json regrets(const std::vector<Function>& functions, std::string_view set,
                       std::uint64_t seeds) {
  nlohmann::json all;
  for (const Function& function : functions) {
    if (function.is_benchmark != (set == "benchmark")) continue;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      all["fleetfit"][function.name].push_back(regret_of(function, false, seed));
      all["random"][function.name].push_back(regret_of(function, true, seed));
    }
  }
  return all;
}

tune::Point point_of(const nlohmann::json& numbers) {
  tune::Point point;
  for (const auto& number : numbers) {
    point.push_back(number.is_null() ? tune::kInactive : number.get<double>());
  }
  return point;
}

/// What stdin asks for comes from tune_bench.py alone, so what is wrong with it may throw.
nlohmann::json evaluate(const std::vector<Function>& functions, const nlohmann::json& asked) {
  nlohmann::json answers;
  for (const Function& function : functions) {
    if (!asked.contains(function.name)) continue;
    for (const auto& point : asked[function.name]) {
      answers[function.name].push_back(function.value(point_of(point)));
    }
  }
  return answers;
}

/// Microseconds, of telling the mean since the last row, of suggesting the fastest of some.
nlohmann::json overhead(const Function& function) {
  constexpr int kSuggestions = 50;
  const auto sampler = tune::make_sampler(function.parameters, {.kind = SamplerKind::tpe});
  core::Random random(1);
  nlohmann::json rows;
  std::size_t reported = 0;
  for (const std::size_t observations : {10, 1'000, 100'000, 1'000'000}) {
    std::vector<tune::Observation> news;
    for (std::size_t i = reported; i < observations; ++i) {
      tune::Point point = function.parameters.sample(random);
      const double value = function.value(point);
      news.push_back({.trial = i, .point = std::move(point), .values = {value}});
    }
    const double tell_s = seconds([&] {
      for (const tune::Observation& observation : news) sampler->tell(observation);
    });
    double suggest_s = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kSuggestions; ++i) {
      suggest_s =
          std::min(suggest_s,
                   seconds([&] { static_cast<void>(sampler->suggest(observations, {}, random)); }));
    }
    rows.push_back({{"observations", observations},
                    {"tell_us", tell_s * 1e6 / static_cast<double>(news.size())},
                    {"suggest_us", suggest_s * 1e6}});
    reported = observations;
  }
  return rows;
}

struct Arguments {
  std::filesystem::path functions = "bench/tune_functions.json";
  std::string set = "benchmark";
  std::uint64_t seeds = 30;
  std::string verb = {};
};

Result<Arguments> parse(std::span<char*> words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < words.size();
    if (word == "--evaluate" || word == "--overhead") {
      arguments.verb = word;
    } else if (word == "--functions" && has_value) {
      arguments.functions = words[++i];
    } else if (word == "--set" && has_value) {
      arguments.set = words[++i];
    } else if (word == "--seeds" && has_value) {
      arguments.seeds = std::strtoull(words[++i], nullptr, 10);
    } else {
      return fail(ErrorCode::invalid_input, fmt::format("{}: no such option", word));
    }
  }
  return arguments;
}

Result<nlohmann::json> run(const Arguments& arguments) {
  FLEETFIT_ASSIGN(const auto functions, read_functions(arguments.functions, data_folder()));
  if (arguments.verb == "--evaluate") {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    FLEETFIT_ASSIGN(const auto asked, core::parse_json(text, "stdin"));
    return evaluate(functions, asked);
  }
  if (arguments.verb == "--overhead") {
    const auto six = std::find_if(functions.begin(), functions.end(),
                                  [](const Function& one) { return one.name == "hartmann6"; });
    return overhead(*six);
  }
  return regrets(functions, arguments.set, arguments.seeds);
}

int run_program(std::span<char*> words) {
  const auto arguments = parse(words);
  const auto answer =
      arguments ? run(*arguments) : Result<nlohmann::json>(tl::unexpected(arguments.error()));
  if (!answer) {
    fmt::print(stderr, "tune_bench: {}\n", answer.error().message);
    return 2;
  }
  fmt::print("{}", core::format_json(*answer));
  return 0;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  return fleetfit::bench::run_program(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
}
