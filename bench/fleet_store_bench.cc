// How quick the store is with a large fleet:
//   fleet_store_bench [AGENTS [JOBS]]     100,000 and 1,000,000 (of jobs and of events) if not said
// The file is made in TMPDIR.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "fleetfit/core/file.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/store/store.h"

namespace fleetfit::bench {
namespace {

using store::FleetRecords;
using store::JobEnd;
using store::JobRecord;
using store::JobState;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatch = 10'000;
constexpr int kRepeats = 300;

store::Time now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}
store::Time in_a_minute() { return now() + std::chrono::minutes(1); }

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A fleet whose devices have had jobs for long, in turns: of eleven jobs ten have ended, one
/// waits.
class Fleet {
 public:
  Fleet(store::FleetStore& store, std::int64_t agents, std::int64_t jobs)
      : store_(store), agents_(agents), jobs_(jobs) {}

  Status fill() {
    for (std::int64_t first = 0; first < agents_; first += kBatch)
      FLEETFIT_TRY(store_.save_agents(agents(first)));
    for (std::int64_t first = 1; first <= jobs_; first += kBatch)
      FLEETFIT_TRY(store_.restore(history(first)));
    return {};
  }

  std::string any_agent() { return name(static_cast<std::int64_t>(random_.below(agents_))); }
  JobRecord new_job() {
    return {.agent = any_agent(), .kind = "measure", .request = kRequest, .created = now()};
  }
  std::vector<store::EventRecord> new_events(std::int64_t count) {
    const auto agent = any_agent();
    std::vector<store::EventRecord> events;
    for (std::int64_t i = 0; i < count; ++i)
      events.push_back({.agent = agent,
                        .sequence = ++sequence_,
                        .kind = "latency",
                        .body = kBody,
                        .time = now()});
    return events;
  }

  store::FleetStore& store() { return store_; }
  std::int64_t jobs() const { return jobs_; }

 private:
  static constexpr const char* kRequest =
      R"({"model":"c5b1e4f0a2","name":"mobilenet_v2.onnx","settings":{"runtime":"auto","threads":4}})";
  static constexpr const char* kBody = R"({"median_ms":12.31,"p99_ms":18.02,"budget_ms":20})";

  static std::string name(std::int64_t number) { return fmt::format("device-{:06}", number); }

  std::vector<store::AgentRecord> agents(std::int64_t first) const {
    std::vector<store::AgentRecord> list;
    for (auto i = first; i < std::min(first + kBatch, agents_); ++i)
      list.push_back({.name = name(i),
                      .version = "1.0.0",
                      .hardware = fmt::format("Raspberry Pi {}, Cortex-A{}", i % 5, 50 + i % 30),
                      .probe = fmt::format(R"({{"roofline":"{}"}})", std::string(1500, 'x')),
                      .serving = R"({"bundle":"c5b1e4f0a2","latency_ms":12.3})",
                      .created = now(),
                      .last_seen = i % 10 == 0 ? std::nullopt : std::optional(now())});
    return list;
  }

  FleetRecords history(std::int64_t first) {
    FleetRecords records;
    for (auto id = first; id < std::min(first + kBatch, jobs_ + 1); ++id) {
      const bool waits = id % 11 == 0;
      const auto agent = name((id - 1) % agents_);
      records.jobs.push_back(
          {.id = id,
           .agent = agent,
           .kind = "measure",
           .request = kRequest,
           .key = id % 3 == 0 ? fmt::format("key-{}", id) : "",
           .state = waits ? JobState::waiting : JobState::finished,
           .attempt = waits ? 0 : 1,
           .result = waits ? "{}" : R"({"median_ms":12.31,"ci95":[12.1,12.5],"runs":321})",
           .created = now(),
           .ended = waits ? std::nullopt : std::optional(now())});
      records.events.push_back({.id = id,
                                .agent = agent,
                                .job = id,
                                .kind = id % 100 == 0 ? "switch" : "latency",
                                .body = kBody,
                                .time = now()});
    }
    return records;
  }

  store::FleetStore& store_;
  std::int64_t agents_;
  std::int64_t jobs_;
  std::int64_t sequence_ = 0;
  core::Random random_{1};
};

void print_times(std::string_view what, std::vector<double> ms, std::int64_t batch) {
  std::ranges::sort(ms);
  const double mean = std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
  fmt::print("{:<44} {:>9.3f} ms median {:>9.3f} ms p99 {:>9.0f}/s\n", what, ms[ms.size() / 2],
             ms[ms.size() * 99 / 100], 1000 * static_cast<double>(batch) / mean);
  std::fflush(stdout);
}

/// Of each call, which does `batch` of something.
template <class Call>
Status time_calls(std::string_view what, std::int64_t batch, const Call& call) {
  std::vector<double> ms;
  for (int i = 0; i < kRepeats; ++i) {
    const auto start = Clock::now();
    FLEETFIT_TRY(core::within(what, call()));
    ms.push_back(ms_since(start));
  }
  print_times(what, std::move(ms), batch);
  return {};
}

// An agent's turn: it claims what waits for it, and ends it.
Status time_turns(Fleet& fleet, std::size_t batch) {
  std::vector<double> claims;
  std::vector<double> ends;
  for (int i = 0; i < kRepeats; ++i) {
    auto job = fleet.new_job();
    const std::vector<JobRecord> jobs(batch, job);
    FLEETFIT_TRY(fleet.store().add_jobs(jobs));
    auto start = Clock::now();
    FLEETFIT_ASSIGN(const auto claimed,
                    fleet.store().claim_jobs(job.agent, now(), in_a_minute(), batch));
    claims.push_back(ms_since(start));
    std::vector<JobEnd> results;
    for (const auto& one : claimed)
      results.push_back({.job = one.id, .attempt = one.attempt, .result = R"({"ms":1})"});
    start = Clock::now();
    FLEETFIT_TRY(fleet.store().end_jobs(job.agent, results, now()));
    ends.push_back(ms_since(start));
  }
  const auto count = static_cast<std::int64_t>(batch);
  print_times(fmt::format("claim_jobs, {}", batch), std::move(claims), count);
  print_times(fmt::format("end_jobs, {}", batch), std::move(ends), count);
  return {};
}

Status time_questions(Fleet& fleet) {
  auto& store = fleet.store();
  const auto recently = now() - std::chrono::hours(1);
  const auto steps = {
      time_calls("find_agent", 1, [&] { return store.find_agent(fleet.any_agent()); }),
      time_calls("list_agents, a page of 100", 100,
                 [&] { return store.list_agents({.after = fleet.any_agent(), .probes = false}); }),
      time_calls("list_agents, 100 with probes", 100,
                 [&] { return store.list_agents({.after = fleet.any_agent()}); }),
      time_calls("list_agents, 100 online", 100,
                 [&] {
                   return store.list_agents(
                       {.seen_since = recently, .after = fleet.any_agent(), .probes = false});
                 }),
      time_calls("list_agents, a query that fits 1 in 150", 100,
                 [&] { return store.list_agents({.query = "pi 4, cortex-a79", .probes = false}); }),
      time_calls("list_agents, a query that fits none", 1,
                 [&] { return store.list_agents({.query = "nowhere", .probes = false}); }),
      time_calls("count_agents", 1, [&] { return store.count_agents(recently); }),
      time_calls("count_jobs", 1, [&] { return store.count_jobs(); }),
      time_calls("count_jobs_of", 1, [&] { return store.count_jobs_of(fleet.any_agent()); }),
      time_calls("list_jobs, the newest 100", 100, [&] { return store.list_jobs({}); }),
      time_calls("list_jobs, 100 that wait, from the middle", 100,
                 [&] {
                   return store.list_jobs(
                       {.state = JobState::waiting, .before = fleet.jobs() / 2, .details = false});
                 }),
      time_calls("list_jobs, of an agent", 1,
                 [&] { return store.list_jobs({.agent = fleet.any_agent()}); }),
      time_calls("take_back_jobs, none", 1, [&] { return store.take_back_jobs(recently); }),
      time_calls("list_events, the newest 100", 100,
                 [&] { return store.list_events({.newest = true}); }),
      time_calls("list_events, 100 of a rare kind", 100,
                 [&] { return store.list_events({.kind = "switch", .after = fleet.jobs() / 2}); }),
      time_calls("list_events, of an agent and a kind", 1,
                 [&] {
                   return store.list_events(
                       {.agent = fleet.any_agent(), .kind = "switch", .newest = true});
                 }),
      time_calls("list_events, of a job", 1,
                 [&] { return store.list_events({.job = fleet.jobs() / 2}); })};
  for (const auto& step : steps)
    if (!step) return step;
  return {};
}

Status time_changes(Fleet& fleet) {
  auto& store = fleet.store();
  const auto steps = {
      time_calls("heartbeat", 1,
                 [&] {
                   return store.heartbeat(fleet.any_agent(), R"({"latency_ms":12.3})", {}, now(),
                                          in_a_minute());
                 }),
      time_calls("add_jobs, 1", 1, [&] { return store.add_jobs(std::vector{fleet.new_job()}); }),
      time_calls("add_jobs, 100", 100,
                 [&] {
                   std::vector<JobRecord> jobs;
                   for (int i = 0; i < 100; ++i) jobs.push_back(fleet.new_job());
                   return store.add_jobs(jobs);
                 }),
      time_turns(fleet, 1),
      time_turns(fleet, 100),
      time_calls("add_events, 1", 1, [&] { return store.add_events(fleet.new_events(1)); }),
      time_calls("add_events, 100", 100, [&] { return store.add_events(fleet.new_events(100)); })};
  for (const auto& step : steps)
    if (!step) return step;
  return {};
}

Status run(std::int64_t agents, std::int64_t jobs, const std::filesystem::path& folder) {
  const auto file = folder / "bench.db";
  FLEETFIT_ASSIGN(const auto store, store::open_store("sqlite:" + file.string()));
  Fleet fleet(store->fleet(), agents, jobs);
  const auto start = Clock::now();
  FLEETFIT_TRY(fleet.fill());
  fmt::print("{} agents, {} jobs and as many events: {:.1f} s, {:.0f} MB\n", agents, jobs,
             ms_since(start) / 1000, static_cast<double>(std::filesystem::file_size(file)) / 1e6);
  FLEETFIT_TRY(time_questions(fleet));
  return time_changes(fleet);
}

int report(const Error& error) {
  fmt::print(stderr, "fleet_store_bench: {}\n", error.message);
  return 1;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  using namespace fleetfit;
  const std::int64_t agents = argc > 1 ? std::atoll(argv[1]) : 100'000;
  const std::int64_t jobs = argc > 2 ? std::atoll(argv[2]) : 1'000'000;
  if (agents < 1 || jobs < 1)
    return bench::report({ErrorCode::invalid_input, "usage: fleet_store_bench [AGENTS [JOBS]]"});
  const auto folder = core::ScratchFolder::create();
  if (!folder) return bench::report(folder.error());
  const auto done = bench::run(agents, jobs, folder->path());
  return done ? 0 : bench::report(done.error());
}
