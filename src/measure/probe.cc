#include "fleetfit/measure/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/measure/device.h"
#include "measure/bandwidth.h"
#include "measure/probe_work.h"

namespace fleetfit::measure {
namespace {

using Sampler = std::function<Result<double>()>;

enum class Value : std::uint8_t {
  best,    ///< of bounds of the machine: whatever else runs can only hide them
  median,  ///< of what an operator usually takes
};

/// A rate that is going to be measured.
struct Task {
  std::string name;
  std::string subject;
  std::string unit;
  Value value = Value::median;
  std::function<Result<Sampler>()> prepare;
};

Task work_task(const OperatorClass& work, Precision precision, int threads, Value value) {
  const bool is_int8 = precision == Precision::int8;
  Task task{.subject = fmt::format("{}, {}", work.subject, to_string(precision)), .value = value};
  std::string_view suffix = "gb_per_s";
  task.unit = "GB/s";
  if (work.counted == Counted::operations) {
    suffix = is_int8 ? "gop_per_s" : "gflop_per_s";
    task.unit = is_int8 ? "GOP/s" : "GFLOP/s";
  }
  task.name = fmt::format("{}_{}_{}", work.name, to_string(precision), suffix);
  task.prepare = [&work, precision, threads]() -> Result<Sampler> {
    FLEETFIT_ASSIGN(auto prepared, PreparedWork::prepare(work, precision, threads));
    // std::function copies what it holds, a program cannot be: both copies would share it.
    auto shared = std::make_shared<PreparedWork>(std::move(prepared));
    return [shared] { return shared->sample(); };
  };
  return task;
}

Task bandwidth_task(const MemoryLevel& level, Stream stream, int threads) {
  const std::string_view verb = stream == Stream::read ? "read" : "copy";
  const auto place = level.name == "memory" ? level.name : fmt::format("L{}", level.name.substr(1));
  Task task{.name = fmt::format("{}_{}_gb_per_s", level.name, verb),
            .subject = fmt::format("{}, {}", place, verb),
            .unit = "GB/s",
            .value = Value::best};
  const BandwidthOptions options{stream, level.bytes_per_thread, threads};
  task.prepare = [options]() -> Result<Sampler> {
    auto meter = std::make_shared<BandwidthMeter>(options);  // shared by copies of the function
    return [meter]() -> Result<double> { return meter->sample_gb_per_s(); };
  };
  return task;
}

std::vector<Task> tasks_for(const Hardware& hardware, int threads) {
  std::vector<Task> tasks;
  for (const auto precision : {Precision::fp32, Precision::int8})
    tasks.push_back(work_task(peak_work(precision), precision, threads, Value::best));
  for (const auto& level : memory_levels(hardware, threads)) {
    for (const auto stream : {Stream::read, Stream::copy})
      tasks.push_back(bandwidth_task(level, stream, threads));
  }
  for (const auto& work : operator_classes()) {
    tasks.push_back(work_task(work, Precision::fp32, threads, Value::median));
    if (work.in_int8 != InInt8::no)
      tasks.push_back(work_task(work, Precision::int8, threads, Value::median));
  }
  return tasks;
}

Result<Rate> summarize(const Task& task, const std::vector<double>& samples) {
  Rate rate{.name = task.name,
            .subject = task.subject,
            .unit = task.unit,
            .runs = static_cast<int>(samples.size())};
  const auto median = core::median(samples);
  const auto low = core::quantile(samples, 0.1);
  const auto high = core::quantile(samples, 0.9);
  if (!median || !low || !high || *median <= 0)
    return fail(ErrorCode::internal, fmt::format("{}: the runs took no time", task.name));
  rate.median = *median;
  rate.best = std::ranges::max(samples);
  rate.spread = (*high - *low) / *median;
  rate.value = task.value == Value::best ? rate.best : rate.median;
  return rate;
}

/// Samples all rates in several rounds, so that none of them is measured only while the machine is
/// busy with something else.
class Rounds {
 public:
  Rounds(const ProbeOptions& options, const core::Clock& clock)
      : options_(options), clock_(clock), begin_(clock.now()) {}

  Result<std::vector<Rate>> measure(const std::vector<Task>& tasks, core::Progress& progress) {
    core::ProgressTask shown(
        progress, {.name = "probe", .total = tasks.size() * (kRounds + 1), .unit = "steps"});
    for (const auto& task : tasks) {
      FLEETFIT_TRY(prepare(task));
      shown.advance();
    }
    auto slots = tasks.size() * kRounds;
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (auto& rate : sampled_) {
        const auto end_s =
            elapsed_s() + (options_.seconds - elapsed_s()) / static_cast<double>(slots--);
        FLEETFIT_TRY(sample_until(rate, end_s));
        shown.advance();
      }
    }
    return summaries(tasks);
  }

  double elapsed_s() const { return std::chrono::duration<double>(clock_.now() - begin_).count(); }

 private:
  static constexpr std::size_t kRounds = 4;

  struct Sampled {
    Sampler sample;
    std::vector<double> samples = {};
  };

  Status check_stop() const {
    if (options_.stop.stop_requested()) return fail(ErrorCode::cancelled, "the probe was stopped");
    return {};
  }

  Status prepare(const Task& task) {
    FLEETFIT_TRY(check_stop());
    FLEETFIT_ASSIGN(auto sample, task.prepare());
    sampled_.push_back({std::move(sample)});
    return {};
  }

  /// The first run finds the caches full of something else and does not count.
  Status sample_until(Sampled& rate, double end_s) const {
    constexpr int kFewest = 2;
    constexpr int kMost = 250;
    FLEETFIT_TRY(rate.sample());
    for (int run = 0; run < kFewest || (run < kMost && elapsed_s() < end_s); ++run) {
      FLEETFIT_TRY(check_stop());
      FLEETFIT_ASSIGN(const auto value, rate.sample());
      rate.samples.push_back(value);
    }
    return {};
  }

  Result<std::vector<Rate>> summaries(const std::vector<Task>& tasks) const {
    std::vector<Rate> rates;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      FLEETFIT_ASSIGN(auto rate, summarize(tasks[i], sampled_[i].samples));
      rates.push_back(std::move(rate));
    }
    return rates;
  }

  const ProbeOptions& options_;
  const core::Clock& clock_;
  std::chrono::nanoseconds begin_;
  std::vector<Sampled> sampled_ = {};
};

Status check(const ProbeOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return fail(ErrorCode::invalid_input,
                fmt::format("threads: {} is not from 1 to {}", options.threads, kMaxThreads));
  }
  if (!std::isfinite(options.seconds) || options.seconds <= 0)
    return fail(ErrorCode::invalid_input, "seconds: the probe needs some time");
  return {};
}

}  // namespace

Result<ProbeReport> probe_device(const ProbeOptions& options, core::Progress& progress,
                                 const core::Clock& clock) {
  FLEETFIT_TRY(check(options));
  FLEETFIT_ASSIGN(auto hardware, read_hardware());
  const auto before = read_system_state();
  ProbeReport report{.hardware = std::move(hardware),
                     .threads = options.threads,
                     .kernels = engine::kernel_identity()};
  Rounds rounds(options, clock);
  FLEETFIT_ASSIGN(report.rates,
                  rounds.measure(tasks_for(report.hardware, options.threads), progress));
  report.conditions = conditions_between(before, read_system_state());
  report.elapsed_s = rounds.elapsed_s();
  return report;
}

std::optional<double> ProbeReport::value(std::string_view name) const {
  const auto found = std::ranges::find(rates, name, &Rate::name);
  return found == rates.end() ? std::nullopt : std::optional(found->value);
}

std::vector<Feature> features(const ProbeReport& report) {
  const auto& hardware = report.hardware;
  std::vector<Feature> list = {{"threads", static_cast<double>(report.threads)},
                               {"cores", static_cast<double>(hardware.cores.size())},
                               {"memory_bytes", static_cast<double>(hardware.memory_bytes)}};
  for (const int level : {1, 2, 3}) {
    if (const auto bytes = data_cache_bytes(hardware, level); bytes > 0)
      list.push_back({fmt::format("l{}_bytes", level), static_cast<double>(bytes)});
  }
  if (const auto khz = identity_of(hardware).max_frequency_khz; khz > 0)
    list.push_back({"max_frequency_khz", static_cast<double>(khz)});
  for (const auto& rate : report.rates) list.push_back({rate.name, rate.value});
  return list;
}

nlohmann::ordered_json to_json(const ProbeReport& report) {
  auto rates = nlohmann::ordered_json::array();
  for (const auto& rate : report.rates) {
    rates.push_back({{"name", rate.name},
                     {"subject", rate.subject},
                     {"unit", rate.unit},
                     {"value", rate.value},
                     {"median", rate.median},
                     {"best", rate.best},
                     {"spread", rate.spread},
                     {"runs", rate.runs}});
  }
  auto vector = nlohmann::ordered_json::object();
  for (const auto& feature : features(report)) vector[feature.name] = feature.value;
  return {{"hardware", to_json(report.hardware)},
          {"threads", report.threads},
          {"kernels", report.kernels},
          {"rates", std::move(rates)},
          {"features", std::move(vector)},
          {"conditions", core::to_json<nlohmann::json>(report.conditions)},
          {"elapsed_s", report.elapsed_s}};
}

}  // namespace fleetfit::measure
