#include "fleetfit/adapt/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/load_phases.h"
#include "fleetfit/adapt/subnet_cache.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::adapt {
namespace {

constexpr double kMicro = 1e3;
constexpr double kMilli = 1e6;
constexpr double kSecond = 1e9;

/// The index of the largest score of one image; nothing if the output is not one row of scores.
std::optional<std::int64_t> best_class(std::span<const float> scores,
                                       std::span<const std::int64_t> shape) {
  const bool one_row = shape.size() <= 2 && (shape.size() < 2 || shape[0] == 1);
  if (!one_row || scores.empty()) return std::nullopt;
  return std::ranges::max_element(scores) - scores.begin();
}

/// Latencies of any number of requests in bounded memory: all of them as long as there is room,
/// after that a random sample in which each has the same chance to be.
class LatencySample {
 public:
  void add(double ms) {
    ++seen_;
    if (sample_.size() < kRoom) {
      sample_.push_back(ms);
    } else if (const auto place = random_.below(seen_); place < kRoom) {
      sample_[static_cast<std::size_t>(place)] = ms;
    }
  }

  /// 0 if there is none.
  double quantile(double share) const { return core::quantile(sample_, share).value_or(0); }

 private:
  static constexpr std::size_t kRoom = std::size_t{1} << 16;

  std::vector<double> sample_;
  std::uint64_t seen_ = 0;
  core::Random random_{1};
};

/// A search that runs beside serving.
class BackgroundSearch {
 public:
  using Search = std::function<Result<SubnetPool>(double, const std::stop_token&)>;

  explicit BackgroundSearch(Search search) : search_(std::move(search)) {}

  bool possible() const { return static_cast<bool>(search_); }

  void start(double budget_ms) {
    if (!search_ || running_) return;
    running_ = true;
    thread_ = std::jthread([this, budget_ms](const std::stop_token& stop) {
      auto found = search_(budget_ms, stop);
      const std::lock_guard lock(mutex_);
      found_ = std::move(found);
    });
  }

  /// What was found since the last call.
  std::optional<Result<SubnetPool>> take() {
    if (!running_) return std::nullopt;
    const std::lock_guard lock(mutex_);
    if (found_) running_ = false;
    return std::exchange(found_, std::nullopt);
  }

 private:
  Search search_;
  bool running_ = false;
  std::mutex mutex_;
  std::optional<Result<SubnetPool>> found_;
  std::jthread thread_;
};

class Server final : public SubnetServer {
 public:
  Server(SubnetPool pool, SubnetPreparer& preparer, const core::Clock& clock, ServerOptions options)
      : clock_(clock),
        options_(std::move(options)),
        began_(clock.now()),
        policy_(std::move(pool.entries), options_.budget_ms, options_.switching),
        monitor_(options_.monitor),
        search_(options_.search),
        cache_(preparer, options_.memory_bytes) {}

  Status begin();

  const std::vector<std::int64_t>& input_shape() const override { return input_shape_; }
  const std::vector<std::int64_t>& output_shape() const override { return output_shape_; }
  Result<Answer> serve(std::span<const float> input, std::optional<std::int64_t> label) override;
  ServingReport report() const override;
  void wait_until_prepared() override { cache_.wait_until_idle(); }

 private:
  struct Use {
    std::size_t requests = 0;
    double ms = 0;
    PoolEntry entry;
  };
  /// A switch that was decided for.
  struct Wish {
    std::size_t target;
    std::chrono::nanoseconds since;
    bool prepared;  // whether its subnet was ready then
  };

  double time_ms() const { return static_cast<double>((clock_.now() - began_).count()) / kMilli; }
  const PoolEntry& entry(std::size_t i) const { return policy_.entries()[i]; }
  const std::string& subnet(std::size_t i) const { return entry(i).subnet; }

  void count(const Answer& answer, std::optional<std::int64_t> label);
  void adapt();
  void follow(const SwitchDecision& decision, const Conditions& conditions);
  std::optional<std::size_t> ready_substitute(const Conditions& conditions);
  bool fulfil(const Wish& wish, SwitchReason reason, double ratio);
  void prefetch();
  void look_after_background();
  void adopt(SubnetPool pool);
  void use_entries(std::vector<PoolEntry> entries);
  void tell(ServingEvent event);

  const core::Clock& clock_;
  ServerOptions options_;
  std::chrono::nanoseconds began_;
  mutable std::mutex mutex_;  // guards all below
  SwitchPolicy policy_;
  LatencyMonitor monitor_;
  std::size_t current_ = 0;
  std::optional<Wish> waiting_;  // its subnet is not ready yet
  ServingReport counts_;
  LatencySample latencies_;
  LoadPhases load_;
  std::map<std::string, Use> uses_;
  std::vector<std::int64_t> input_shape_;
  std::vector<std::int64_t> output_shape_;
  BackgroundSearch search_;
  SubnetCache cache_;
  SubnetCache::Handle running_;
};

Status Server::begin() {
  current_ = policy_.start();
  // The quickest as well: whatever comes, there is a way out.
  cache_.want({subnet(current_), subnet(quickest(policy_.entries()))});
  cache_.wait_until_idle();
  if (auto failures = cache_.take_failures(); !failures.empty())
    return tl::unexpected(std::move(failures[0].error));
  running_ = cache_.find(subnet(current_));
  input_shape_ = running_->input_shape();
  output_shape_ = running_->output_shape();
  prefetch();
  began_ = clock_.now();
  tell({.kind = ServingEventKind::started, .to = subnet(current_)});
  return {};
}

Result<Answer> Server::serve(std::span<const float> input, std::optional<std::int64_t> label) {
  const std::lock_guard lock(mutex_);
  const auto before = clock_.now();
  FLEETFIT_TRY(running_->run(input));
  const double ms = static_cast<double>((clock_.now() - before).count()) / kMilli;
  const auto scores = running_->output();
  Answer answer{.best_class = best_class(scores, output_shape_),
                .scores = {scores.begin(), scores.end()},
                .latency_ms = ms,
                .subnet = subnet(current_)};
  count(answer, label);
  monitor_.record(time_ms(), ms, entry(current_).latency_ms);
  adapt();
  return answer;
}

void Server::count(const Answer& answer, std::optional<std::int64_t> label) {
  ServedRequest served{.time_s = time_ms() / 1e3,
                       .ratio = answer.latency_ms / entry(current_).latency_ms,
                       .within_budget = answer.latency_ms <= options_.budget_ms,
                       .accuracy = entry(current_).accuracy,
                       .subnet = answer.subnet};
  if (label && answer.best_class) served.right = *label == *answer.best_class;
  load_.record(served);
  ++counts_.requests;
  if (served.within_budget) ++counts_.within_budget;
  latencies_.add(answer.latency_ms);
  auto& use = uses_[answer.subnet];
  if (use.requests == 0) use.entry = entry(current_);
  ++use.requests;
  use.ms += answer.latency_ms;
  if (served.right) ++counts_.labelled;
  if (served.right.value_or(false)) ++counts_.right;
}

void Server::adapt() {
  look_after_background();
  const auto& conditions = monitor_.conditions();
  if (!conditions) return;
  const double ratio = conditions->ratio;
  const auto decision = policy_.decide(time_ms(), *conditions, current_);
  counts_.budget_met = entry(current_).latency_ms * ratio <= options_.budget_ms;
  if (decision.search_again) {
    tell({.kind = ServingEventKind::nothing_fits, .from = subnet(current_), .ratio = ratio});
    search_.start(conditions->longest_within(options_.budget_ms));
  }
  follow(decision, *conditions);
}

void Server::follow(const SwitchDecision& decision, const Conditions& conditions) {
  if (!decision.target) {
    waiting_.reset();
    return;
  }
  Wish wish{.target = *decision.target, .since = clock_.now(), .prepared = true};
  if (waiting_ && waiting_->target == wish.target) wish = *waiting_;
  if (fulfil(wish, decision.reason, conditions.ratio)) return;
  wish.prepared = false;
  waiting_ = wish;
  prefetch();
  if (decision.reason == SwitchReason::room) return;
  if (const auto substitute = ready_substitute(conditions)) {
    fulfil({.target = *substitute, .since = clock_.now(), .prepared = true}, decision.reason,
           conditions.ratio);
  }
}

/// While the right one is being prepared: the most accurate one that is ready and fits.
std::optional<std::size_t> Server::ready_substitute(const Conditions& conditions) {
  const double longest = conditions.longest_within(options_.budget_ms);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < policy_.entries().size(); ++i) {
    const bool fits = entry(i).latency_ms <= longest;
    const bool better = !best || entry(i).accuracy > entry(*best).accuracy;
    if (i != current_ && fits && better && cache_.find(subnet(i))) best = i;
  }
  return best;
}

bool Server::fulfil(const Wish& wish, SwitchReason reason, double ratio) {
  auto ready = cache_.find(subnet(wish.target));
  if (!ready) return false;
  running_ = std::move(ready);
  const std::size_t from = std::exchange(current_, wish.target);
  const double us = static_cast<double>((clock_.now() - wish.since).count()) / kMicro;
  waiting_.reset();
  policy_.switched(time_ms(), from, current_);
  ++counts_.switches;
  counts_.longest_switch_us = std::max(counts_.longest_switch_us, us);
  tell({.kind = ServingEventKind::switched,
        .from = subnet(from),
        .to = subnet(current_),
        .ratio = ratio,
        .switch_us = us,
        .prepared = wish.prepared,
        .reason = std::string(to_string(reason))});
  prefetch();
  return true;
}

/// Wanted first: what runs, what is waited for, the way out, and then the neighbours, the nearer
/// the sooner.
void Server::prefetch() {
  std::vector<std::size_t> order = {current_};
  if (waiting_) order.push_back(waiting_->target);
  order.push_back(quickest(policy_.entries()));
  std::vector<std::size_t> others(policy_.entries().size());
  for (std::size_t i = 0; i < others.size(); ++i) others[i] = i;
  const auto distance = [&](std::size_t i) {
    return std::abs(std::log(entry(i).latency_ms / entry(current_).latency_ms));
  };
  std::ranges::stable_sort(others, {}, distance);
  order.insert(order.end(), others.begin(), others.end());
  std::vector<std::string> subnets;
  for (const std::size_t i : order) {
    if (std::ranges::find(subnets, subnet(i)) == subnets.end()) subnets.push_back(subnet(i));
  }
  cache_.want(std::move(subnets));
}

void Server::look_after_background() {
  for (const auto& failure : cache_.take_failures()) {
    tell({.kind = ServingEventKind::prepare_failed,
          .to = failure.subnet,
          .reason = failure.error.message});
    std::vector<PoolEntry> others(policy_.entries().begin(), policy_.entries().end());
    std::erase_if(others, [&](const auto& other) { return other.subnet == failure.subnet; });
    use_entries(std::move(others));
  }
  auto found = search_.take();
  if (!found) return;
  if (!*found || (*found)->entries.empty()) {
    const std::string why = *found ? "it found no subnet" : found->error().message;
    tell({.kind = ServingEventKind::search_failed, .reason = why});
    return;
  }
  adopt(**std::move(found));
}

void Server::adopt(SubnetPool pool) {
  use_entries(std::move(pool.entries));
  tell({.kind = ServingEventKind::searched, .from = subnet(current_)});
}

/// From now on these, and what runs, are the pool.
void Server::use_entries(std::vector<PoolEntry> entries) {
  const PoolEntry running = entry(current_);
  if (std::ranges::find(entries, running.subnet, &PoolEntry::subnet) == entries.end())
    entries.push_back(running);
  std::ranges::stable_sort(entries, {}, &PoolEntry::latency_ms);
  policy_ = SwitchPolicy(std::move(entries), options_.budget_ms, options_.switching);
  const auto place = std::ranges::find(policy_.entries(), running.subnet, &PoolEntry::subnet);
  current_ = static_cast<std::size_t>(place - policy_.entries().begin());
  waiting_.reset();
  prefetch();
}

void Server::tell(ServingEvent event) {
  event.time_s = static_cast<double>((clock_.now() - began_).count()) / kSecond;
  if (options_.on_event) options_.on_event(event);
}

ServingReport Server::report() const {
  const std::lock_guard lock(mutex_);
  ServingReport report = counts_;
  report.median_ms = latencies_.quantile(0.5);
  report.p95_ms = latencies_.quantile(0.95);
  if (const auto& conditions = monitor_.conditions()) report.ratio = conditions->ratio;
  report.subnet = subnet(current_);
  report.prepared_bytes = cache_.peak_bytes();
  report.load = load_.report();
  for (const auto& [text, use] : uses_) {
    report.subnets.push_back({.subnet = text,
                              .requests = use.requests,
                              .accuracy = use.entry.accuracy,
                              .estimated_ms = use.entry.latency_ms,
                              .mean_ms = use.ms / static_cast<double>(use.requests)});
  }
  std::ranges::stable_sort(report.subnets, {}, &SubnetUse::estimated_ms);
  return report;
}

Status check(const SubnetPool& pool, const ServerOptions& options) {
  if (pool.entries.empty()) return fail(ErrorCode::invalid_input, "the pool has no subnet");
  if (!(options.budget_ms > 0) || !std::isfinite(options.budget_ms)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("budget: {} is no positive number of milliseconds", options.budget_ms));
  }
  for (const auto& entry : pool.entries) {
    if (entry.latency_ms > 0 && std::isfinite(entry.latency_ms)) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("subnet {}: its latency is no positive number", entry.subnet));
  }
  return {};
}

}  // namespace

FLEETFIT_REPORT(SubnetUse, subnet, requests, mean_ms, estimated_ms, accuracy)

Result<std::unique_ptr<SubnetServer>> SubnetServer::start(SubnetPool pool, SubnetPreparer& preparer,
                                                          const core::Clock& clock,
                                                          ServerOptions options) {
  FLEETFIT_TRY(check(pool, options));
  auto server = std::make_unique<Server>(std::move(pool), preparer, clock, std::move(options));
  FLEETFIT_TRY(server->begin());
  return server;
}

}  // namespace fleetfit::adapt
