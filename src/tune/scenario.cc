#include "fleetfit/tune/scenario.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <thread>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::tune {
namespace {

/// When samples come, in ms from the start, for ever.
class Arrivals {
 public:
  Arrivals(const Scenario& scenario, std::uint64_t seed)
      : scenario_(scenario), random_(core::Random(seed).split("arrivals")) {
    advance();
  }

  double next_ms() const { return next_ms_; }

  void advance() {
    if (scenario_.kind == ScenarioKind::server) {
      const std::int64_t query = count_++ / scenario_.samples;
      next_ms_ = static_cast<double>(query) * scenario_.period_ms;
    } else {
      next_ms_ -= std::log1p(-random_.uniform()) * 1000 / scenario_.rate_hz;
    }
  }

 private:
  const Scenario& scenario_;
  core::Random random_;
  std::int64_t count_ = 0;
  double next_ms_ = 0;
};

/// The time as the worker sees it, and what a run takes of it: simulated or real.
class World {
 public:
  virtual ~World() = default;
  virtual double now_ms() = 0;
  virtual void wait_until_ms(double time_ms) = 0;
  virtual Status run(std::int64_t samples) = 0;
  /// Whether samples that come at this time are to be answered, after so many were.
  virtual bool admits(double time_ms, std::size_t answered) = 0;
  /// Whether to leave those that still wait.
  virtual bool gives_up() = 0;
};

/// What has happened.
struct Record {
  std::vector<double> responses_ms = {};
  double busy_ms = 0;
  double end_ms = 0;
  std::size_t runs = 0;
  std::size_t left = 0;  // samples that were not answered
};

Status answer(World& world, std::int64_t count, std::deque<double>& waiting, Record& record) {
  const double start = world.now_ms();
  FLEETFIT_TRY(world.run(count));
  record.end_ms = world.now_ms();
  record.busy_ms += record.end_ms - start;
  ++record.runs;
  for (std::int64_t i = 0; i < count; ++i) {
    record.responses_ms.push_back(record.end_ms - waiting.front());
    waiting.pop_front();
  }
  return {};
}

/// Samples come whether or not the last ones were answered.
Result<Record> serve_open(World& world, std::int64_t batch, Arrivals arrivals) {
  Record record;
  std::deque<double> waiting;
  std::size_t admitted = 0;
  const auto more_come = [&] { return world.admits(arrivals.next_ms(), admitted); };
  while (!world.gives_up()) {
    for (; arrivals.next_ms() <= world.now_ms() && more_come(); arrivals.advance(), ++admitted)
      waiting.push_back(arrivals.next_ms());
    if (waiting.empty()) {
      if (!more_come()) break;
      world.wait_until_ms(arrivals.next_ms());
      continue;
    }
    const auto count = std::min<std::int64_t>(batch, std::ssize(waiting));
    FLEETFIT_TRY(answer(world, count, waiting, record));
  }
  record.left = waiting.size();
  return record;
}

/// The next samples come when the last ones were answered: one, or as many as a batch takes.
Result<Record> serve_closed(World& world, std::int64_t count) {
  Record record;
  std::deque<double> waiting;
  while (!world.gives_up() && world.admits(world.now_ms(), record.responses_ms.size())) {
    waiting.assign(static_cast<std::size_t>(count), world.now_ms());
    FLEETFIT_TRY(answer(world, count, waiting, record));
  }
  return record;
}

Result<Record> serve(World& world, const Scenario& scenario, std::int64_t batch,
                     std::uint64_t seed) {
  switch (scenario.kind) {
    case ScenarioKind::single:
      return serve_closed(world, 1);
    case ScenarioKind::offline:
      return serve_closed(world, batch);
    default:
      return serve_open(world, batch, Arrivals(scenario, seed));
  }
}

Response response_of(const Record& record) {
  if (record.responses_ms.empty()) return {};
  const auto answered = static_cast<double>(record.responses_ms.size());
  // All responses are finite and there are some, so none of these can fail.
  return {.mean_ms = *core::mean(record.responses_ms),
          .p95_ms = *core::quantile(record.responses_ms, 0.95),
          .p99_ms = *core::quantile(record.responses_ms, 0.99),
          .throughput = 1000 * answered / record.end_ms,
          .busy = std::min(1.0, record.busy_ms / record.end_ms),
          .run_ms = record.busy_ms / static_cast<double>(record.runs),
          .run_samples = answered / static_cast<double>(record.runs),
          .samples = std::ssize(record.responses_ms)};
}

/// How long runs take: the inverse of their distribution function, through the quantiles that are
/// known. What is faster than the median is chosen so that the mean is right and, if that is not
/// enough, what is slower than 99 % of the runs.
class RunTimes {
 public:
  explicit RunTimes(const BatchCost& cost) : median_(cost.latency_ms) {
    if (!cost.spread) return;
    p90_ = std::max(cost.spread->p90_ms, median_);
    p99_ = std::max(cost.spread->p99_ms, p90_);
    const double middle = 0.25 * median_ + 0.2 * (median_ + p90_) + 0.045 * (p90_ + p99_);
    const double tail = 2 * p99_ - p90_;
    fastest_ = std::clamp((cost.spread->mean_ms - middle - 0.005 * (p99_ + tail)) / 0.25,
                          median_ / 2, median_);
    slowest_ = std::max(p99_, (cost.spread->mean_ms - middle - 0.25 * fastest_) / 0.005 - p99_);
    varies_ = true;
  }

  double draw(core::Random& random) const {
    if (!varies_) return median_;
    const double u = random.uniform();
    if (u < 0.5) return std::lerp(fastest_, median_, u / 0.5);
    if (u < 0.9) return std::lerp(median_, p90_, (u - 0.5) / 0.4);
    if (u < 0.99) return std::lerp(p90_, p99_, (u - 0.9) / 0.09);
    return std::lerp(p99_, slowest_, (u - 0.99) / 0.01);
  }

 private:
  double median_;
  double fastest_ = 0;
  double p90_ = 0;
  double p99_ = 0;
  double slowest_ = 0;
  bool varies_ = false;
};

class SimulatedWorld final : public World {
 public:
  SimulatedWorld(const std::function<BatchCost(std::int64_t)>& cost, std::int64_t batch,
                 const SimulationOptions& options)
      : cost_(cost),
        known_(static_cast<std::size_t>(batch)),
        samples_(options.samples),
        random_(core::Random(options.seed).split("runs")) {}

  double now_ms() override { return now_ms_; }
  void wait_until_ms(double time_ms) override { now_ms_ = std::max(now_ms_, time_ms); }

  Status run(std::int64_t samples) override {
    auto& known = known_[static_cast<std::size_t>(samples) - 1];
    if (!known) {
      const auto cost = cost_(samples);
      known = {RunTimes(cost), cost.energy_mj};
    }
    now_ms_ += known->times.draw(random_);
    if (energy_mj_ && known->energy_mj) {
      *energy_mj_ += *known->energy_mj;
    } else {
      energy_mj_.reset();
    }
    return {};
  }

  bool admits(double /*time_ms*/, std::size_t answered) override { return answered < samples_; }
  bool gives_up() override { return false; }

  std::optional<double> energy_mj() const { return energy_mj_; }

 private:
  struct Known {
    RunTimes times;
    std::optional<double> energy_mj;
  };
  const std::function<BatchCost(std::int64_t)>& cost_;
  std::vector<std::optional<Known>> known_;  // of 1 sample and more
  std::size_t samples_;
  core::Random random_;
  double now_ms_ = 0;
  std::optional<double> energy_mj_ = 0;
};

bool waits_for_samples(const Scenario& scenario) {
  return scenario.kind == ScenarioKind::server || scenario.kind == ScenarioKind::multistream;
}

/// Whether samples come faster than full batches are answered. Those that come at random also
/// pile up if they come just as fast.
bool is_saturated(const Scenario& scenario, std::int64_t batch, double batch_ms) {
  const double capacity = static_cast<double>(batch) / batch_ms;
  if (scenario.kind == ScenarioKind::server)
    return static_cast<double>(scenario.samples) / scenario.period_ms > capacity * (1 + 1e-12);
  return scenario.kind == ScenarioKind::multistream && scenario.rate_hz / 1000 >= capacity;
}

/// So many that there are whole queries of a server, and ten runs of anything.
SimulationOptions rounded(const Scenario& scenario, std::int64_t batch, SimulationOptions options) {
  options.samples = std::max(options.samples, static_cast<std::size_t>(10 * batch));
  if (scenario.kind == ScenarioKind::server) {
    const auto query = static_cast<std::size_t>(scenario.samples);
    options.samples = (options.samples + query - 1) / query * query;
  }
  return options;
}

class RealWorld final : public World {
 public:
  RealWorld(const RealServer& server, const RealRun& run)
      : server_(server), start_(server.clock.now()), last_ms_(1000 * run.seconds) {}

  double now_ms() override {
    return std::chrono::duration<double, std::milli>(server_.clock.now() - start_).count();
  }

  void wait_until_ms(double time_ms) override {
    const auto until =
        start_ + std::chrono::nanoseconds(static_cast<std::int64_t>(std::ceil(time_ms * 1e6)));
    if (server_.wait_until) return server_.wait_until(until);
    sleep_until(until);
  }

  Status run(std::int64_t samples) override { return server_.execute(samples); }

  bool admits(double time_ms, std::size_t /*answered*/) override {
    return time_ms < last_ms_ && !stopped();
  }

  // What waits after the end is answered, unless it takes as long as everything before.
  bool gives_up() override { return stopped() || now_ms() > 2 * last_ms_; }

  bool stopped() {
    stopped_ = stopped_ || (server_.stop && server_.stop());
    return stopped_;
  }

 private:
  // Timers wake up late by some ten microseconds; a server's clients do not wait for timers.
  void sleep_until(std::chrono::nanoseconds until) const {
    constexpr std::chrono::microseconds kEarly{200};
    constexpr std::chrono::milliseconds kLookAround{50};
    const auto left = until - server_.clock.now() - kEarly;
    if (left > left.zero())
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kLookAround));
    if (left > kLookAround) return;
    while (server_.clock.now() < until) std::this_thread::yield();
  }

  const RealServer& server_;
  std::chrono::nanoseconds start_;
  double last_ms_;
  bool stopped_ = false;
};

/// Whether those that waited at the end took long to be answered.
bool fell_behind(const Scenario& scenario, const Record& record, double seconds) {
  if (!waits_for_samples(scenario)) return false;
  const double late_ms = record.end_ms - 1000 * seconds;
  const double patience_ms = scenario.kind == ScenarioKind::server ? 2 * scenario.period_ms : 0;
  return record.left > 0 || late_ms > std::max(100 * seconds, patience_ms);
}

}  // namespace

core::Names names_of(ScenarioKind) {
  static constexpr core::Name kAll[] = {{ScenarioKind::single, "single"},
                                        {ScenarioKind::offline, "offline"},
                                        {ScenarioKind::server, "server"},
                                        {ScenarioKind::multistream, "multistream"}};
  return {.what = "scenario", .all = kAll};
}

std::optional<Rhythm> rhythm_of(const Scenario& scenario, const Response& response) {
  if (!waits_for_samples(scenario) || response.saturated || !(response.busy < 1))
    return std::nullopt;
  // From the end of the work to the next sample it is as long as between any two random arrivals.
  const double pause_ms = scenario.kind == ScenarioKind::server
                              ? (1 - response.busy) * scenario.period_ms
                              : 1000 / scenario.rate_hz;
  return Rhythm{.busy_ms = pause_ms * response.busy / (1 - response.busy), .pause_ms = pause_ms};
}

Response simulate(const Scenario& scenario, std::int64_t batch,
                  const std::function<BatchCost(std::int64_t)>& cost,
                  const SimulationOptions& options) {
  SimulatedWorld world(cost, batch, rounded(scenario, batch, options));
  auto record = serve(world, scenario, batch, options.seed);
  if (!record) return {};  // simulated runs do not fail
  if (scenario.kind == ScenarioKind::server) {
    const auto queries =
        static_cast<double>(record->responses_ms.size()) / static_cast<double>(scenario.samples);
    record->end_ms = std::max(record->end_ms, queries * scenario.period_ms);
  }
  auto response = response_of(*record);
  if (const auto energy = world.energy_mj())
    response.energy_mj = *energy / static_cast<double>(record->responses_ms.size());
  response.saturated = is_saturated(scenario, batch, cost(batch).mean_ms());
  return response;
}

Result<Response> serve_for_real(const Scenario& scenario, std::int64_t batch,
                                const RealServer& server, const RealRun& run) {
  RealWorld world(server, run);
  FLEETFIT_ASSIGN(auto record, serve(world, scenario, batch, run.seed));
  if (record.responses_ms.empty()) return fail(ErrorCode::cancelled, "nothing was answered");
  const bool behind = !world.stopped() && fell_behind(scenario, record, run.seconds);
  if (waits_for_samples(scenario) && !world.stopped())
    record.end_ms = std::max(record.end_ms, 1000 * run.seconds);
  auto response = response_of(record);
  response.saturated = behind;
  return response;
}

}  // namespace fleetfit::tune
