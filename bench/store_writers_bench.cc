// How many trials per second a store takes from several writers at once, each over a connection of
// its own, every answer waited for:
//   store_writers_bench URL [WRITERS] [SECONDS]
// bench/store_writers.py runs it on SQLite and PostgreSQL, with pgbench beside it.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fleetfit/store/store.h"

namespace fleetfit::bench {
namespace {

using store::Claim;
using store::LevelEnd;
using store::TrialDecision;
using store::TrialRecord;
using store::TrialState;
using Clock = std::chrono::steady_clock;

store::Time now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::vector<TrialRecord> new_trials(std::int64_t first, std::size_t count) {
  std::vector<TrialRecord> trials;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = first + static_cast<std::int64_t>(i);
    trials.push_back(
        {.number = number,
         .params = fmt::format(R"({{"layers":18,"batch_size":{},"learning_rate":{},"threads":2}})",
                               32 + number % 480, 1.0 / static_cast<double>(number + 3))});
  }
  return trials;
}

LevelEnd end_of(const TrialRecord& trial, const std::string& study, const std::string& worker) {
  return {
      .claim = {.study = study, .trial = trial.number, .worker = worker, .attempt = trial.attempts},
      .level = {.epochs = 4,
                .accuracy = 0.5,
                .loss = 0.25,
                .training_s = 12.5,
                .metrics = R"({"f1":0.5})",
                .epoch_values = "[0.5,0.625,0.75,0.8125]",
                .worker = worker,
                .started = now(),
                .ended = now()},
      .model_file = "model.onnx"};
}

/// Says why it ends the whole benchmark.
template <class Value>
Value must(Result<Value> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::_Exit(1);
}
void must(const Status& status) {
  if (status) return;
  fmt::print(stderr, "{}\n", status.error().message);
  std::_Exit(1);
}

/// A writer's part of the life of trials: taken, ended, decided.
class Writer {
 public:
  Writer(const std::string& url, std::string study, std::string name)
      : store_(must(store::open_store(url))), study_(std::move(study)), name_(std::move(name)) {}

  /// How many it has taken and ended.
  std::size_t work(std::size_t batch) {
    auto& studies = store_->studies();
    const auto trials = must(
        studies.claim_trials(study_, name_, store::Time{}, now() + std::chrono::minutes(9), batch));
    std::vector<LevelEnd> ends;
    std::vector<TrialDecision> decisions;
    for (const auto& trial : trials) {
      ends.push_back(end_of(trial, study_, name_));
      decisions.emplace_back(store::SaveScore{.trial = trial.number, .score = 0.5});
      decisions.emplace_back(store::EndTrial{.trial = trial.number, .state = TrialState::finished});
    }
    if (trials.empty()) return 0;
    must(studies.end_levels(ends).map([](const auto& /*holds*/) {}));
    must(studies.decide(study_, decisions).map([](const auto& /*effects*/) {}));
    return trials.size();
  }

  void add(std::size_t count) {
    must(store_->studies().add_trials(study_, new_trials(next_, count)));
    next_ += static_cast<std::int64_t>(count);
  }

 private:
  std::unique_ptr<store::Store> store_;
  std::string study_;
  std::string name_;
  std::int64_t next_ = 0;
};

struct Setting {
  std::string url;
  std::size_t writers = 8;
  double seconds = 5;
};

std::string new_study(const Setting& setting, const std::string& name) {
  const auto store = must(store::open_store(setting.url));
  must(store->studies().create_study({.name = name, .created = now()}));
  return name;
}

// Trials per second: `work` is called in each writer's thread with its number until time is up.
template <class Work>
double rate(const Setting& setting, const Work& work) {
  std::atomic<std::size_t> done = 0;
  std::atomic<bool> stop = false;
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < setting.writers; ++i)
      threads.emplace_back([&, i] { work(i, done, stop); });
    std::this_thread::sleep_for(std::chrono::duration<double>(setting.seconds));
    stop = true;
  }
  return static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - begin).count();
}

// Each writer has a study of its own and does everything in it.
double own_studies(const Setting& setting, std::size_t batch) {
  return rate(setting, [&](std::size_t i, auto& done, auto& stop) {
    const auto study = new_study(setting, fmt::format("own {} {}", batch, i));
    Writer writer(setting.url, study, "w");
    while (!stop) {
      writer.add(batch);
      done += writer.work(batch);
    }
  });
}

// All writers take the trials of one study, which somebody has queued before.
double one_study(const Setting& setting, std::size_t batch) {
  const auto study = new_study(setting, fmt::format("one {}", batch));
  Writer tuner(setting.url, study, "tuner");
  for (int i = 0; i < 40; ++i) tuner.add(1000);
  return rate(setting, [&](std::size_t i, auto& done, auto& stop) {
    Writer writer(setting.url, study, fmt::format("w{}", i));
    while (!stop) {
      const auto worked = writer.work(batch);
      if (worked == 0) return;
      done += worked;
    }
  });
}

// Leases that are renewed: what a worker writes each second while it trains.
double renewals(const Setting& setting) {
  const auto study = new_study(setting, "renewals");
  Writer(setting.url, study, "tuner").add(1000);
  return rate(setting, [&](std::size_t i, auto& done, auto& stop) {
    const auto store = must(store::open_store(setting.url));
    const auto worker = fmt::format("w{}", i);
    const auto trial =
        must(store->studies().claim_trial(study, worker, store::Time{}, now())).value();
    const Claim claim{
        .study = study, .trial = trial.number, .worker = worker, .attempt = trial.attempts};
    while (!stop) {
      must(store->studies().renew(claim, now(), "").map([](auto /*hold*/) {}));
      ++done;
    }
  });
}

// Networks of 60 operators that were measured on a device.
double measurements(const Setting& setting, std::size_t batch) {
  store::MeasurementRecord record{.device = "pi4-xnnpack",
                                  .device_fingerprint = "0123456789abcdef",
                                  .model_hash = "0123456789abcdef0123456789abcdef",
                                  .model_name = "icpe-0123456789ab",
                                  .space = "icpe",
                                  .design = "0123456789",
                                  .latency = store::Latency{.median_ms = 1.5},
                                  .runs = 100,
                                  .started = now()};
  for (int i = 0; i < 60; ++i)
    record.operators.push_back(
        {.name = fmt::format("conv_{}", i), .type = "Conv", .kernel = "xnn_f32_1x1", .ms = 0.5});
  const std::vector<store::MeasurementRecord> records(batch, record);
  return rate(setting, [&](std::size_t /*writer*/, auto& done, auto& stop) {
    const auto store = must(store::open_store(setting.url));
    while (!stop) {
      must(store->add_measurements(records).map([](const auto& /*ids*/) {}));
      done += batch;
    }
  });
}

int main_with(std::span<char*> arguments) {
  if (arguments.size() < 2) return 2;
  Setting setting{.url = arguments[1]};
  if (arguments.size() > 2) setting.writers = static_cast<std::size_t>(std::atoi(arguments[2]));
  if (arguments.size() > 3) setting.seconds = std::atof(arguments[3]);
  for (const std::size_t batch : {std::size_t{1}, std::size_t{10}, std::size_t{100}}) {
    fmt::print("{:<60} {:>8.0f} trials/s\n",
               fmt::format("{} writers, a study each: add, claim, end, decide {} at once",
                           setting.writers, batch),
               own_studies(setting, batch));
    fmt::print(
        "{:<60} {:>8.0f} trials/s\n",
        fmt::format("{} writers, one study: claim, end, decide {} at once", setting.writers, batch),
        one_study(setting, batch));
    std::fflush(stdout);
  }
  fmt::print("{:<60} {:>8.0f} renewals/s\n",
             fmt::format("{} writers, one study: leases", setting.writers), renewals(setting));
  for (const std::size_t batch : {std::size_t{1}, std::size_t{10}})
    fmt::print(
        "{:<60} {:>8.0f} measurements/s\n",
        fmt::format("{} writers: measurements of 60 operators, {} at once", setting.writers, batch),
        measurements(setting, batch));
  return 0;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  return fleetfit::bench::main_with(std::span(argv, static_cast<std::size_t>(argc)));
}
