#include "fleetfit/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "fleetfit/core/plausible.h"
#include "fleetfit/core/sleep.h"
#include "fleetfit/measure/series.h"

namespace fleetfit::measure {
namespace {

constexpr int kMostRunsPerRequest = 10'000;
// Runtimes take their memory in the first runs: ONNX Runtime in the first and, all in one piece,
// once more in the second, each of which takes twice as long as those after them.
constexpr int kLeastWarmupRuns = 3;
// One run of three may be disturbed. Where a request is nearly all that there is (a profile, one of
// several short sessions) it holds so many, unless they take longer than this.
constexpr int kLeastRunsPerRequest = 3;
constexpr double kLongRequestMs = 1000;
constexpr std::size_t kProfiledRequests = 5;
constexpr double kProfileTolerance = 0.1;
// Whoever looks after every request will once see it settled by luck.
constexpr double kLookGrowth = 1.25;
constexpr int kLooksIfCorrelated = 3;
constexpr double kNotableSteal = 0.02;

double median_of(std::span<const double> values) { return core::median(values).value_or(0); }

double mean_of(std::span<const double> values) { return core::mean(values).value_or(0); }

double quantile_of(std::span<const double> values, double probability) {
  return core::quantile(values, probability).value_or(0);
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Latency latency_of(std::span<const double> run_ms) {
  return {.median_ms = median_of(run_ms),
          .mean_ms = mean_of(run_ms),
          .p90_ms = quantile_of(run_ms, 0.9),
          .p99_ms = quantile_of(run_ms, 0.99),
          .ci95_ms = median_interval(run_ms),
          .session_ci95_ms = median_interval(run_ms),
          .mean_ci95_ms = mean_interval(run_ms)};
}

std::vector<std::size_t> order_by_name(const std::vector<OperatorTime>& operators) {
  std::vector<std::size_t> order(operators.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return std::string_view(operators[i].name); });
  return order;
}

// The operators of the profiled requests: all requests must have the same ones. Their order is that
// of the first request; ONNX Runtime executes branches in another order in each session.
class Profile {
 public:
  /// Fails, naming the operator, if the first request had others.
  Status add(RunTimes times) {
    if (!requests_.empty()) {
      FLEETFIT_TRY(arrange_as_first(times.operators));
    }
    run_ms_.insert(run_ms_.end(), times.ms.begin(), times.ms.end());
    requests_.push_back(std::move(times.operators));
    return {};
  }
  bool is_complete() const { return requests_.size() >= kProfiledRequests; }
  bool has_operators() const { return !requests_.empty() && !requests_.front().empty(); }
  double median_ms() const { return median_of(run_ms_); }
  std::vector<OperatorTime> operators() const {
    auto result = requests_.front();
    std::vector<double> means(requests_.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      std::ranges::transform(requests_, means.begin(), [i](const auto& r) { return r[i].ms; });
      result[i].ms = median_of(means);
    }
    return result;
  }

 private:
  Status arrange_as_first(std::vector<OperatorTime>& operators) const {
    const auto& first = requests_.front();
    if (operators.size() != first.size()) {
      return fail(ErrorCode::device_failed,
                  fmt::format("the runtime told {} operators, and {} in an earlier run",
                              operators.size(), first.size()));
    }
    auto arranged = first;
    const auto order = order_by_name(operators);
    const auto first_order = order_by_name(first);
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto& op = operators[order[i]];
      auto& place = arranged[first_order[i]];
      if (op.name != place.name) {
        return fail(ErrorCode::device_failed,
                    fmt::format("the runtime told of operator {} in one run and not in another",
                                std::min(op.name, place.name)));
      }
      place = std::move(op);
    }
    operators = std::move(arranged);
    return {};
  }

  std::vector<double> run_ms_;
  std::vector<std::vector<OperatorTime>> requests_;
};

// One subject on its way: loaded, warmed up, measured in rounds, finished.
class Course {
 public:
  Course(const Subject& subject, const Protocol& protocol, const Session& session)
      : subject_(subject),
        protocol_(protocol),
        session_(session),
        record_(failed_measurement(protocol, session.clock, "")) {}

  void fail_with(Error error) {
    fail_with(error.code == ErrorCode::cancelled ? kCancelled : std::move(error.message));
  }

  void fail_with(std::string reason) {
    if (failed_) return;
    failed_ = true;
    record_.reason = std::move(reason);
  }

  void load() {
    before_ = read_system_state(session_.root);
    auto loaded = subject_.runtime.load(subject_.model, subject_.load);
    if (!loaded) return fail_with(std::move(loaded.error()));
    loaded_ = true;
    record_.kernel_choices = std::move(loaded->choices);
  }

  void warm_up() {
    const double limit = std::min(protocol_.max_warmup_s, protocol_.max_time_s / 4);
    const auto start = session_.clock.now();
    std::vector<double> medians;
    // The first run is often far slower than the rest, and says how many a request may hold.
    while (!failed_ && !session_.stop.stop_requested()) {
      const auto times = request(runs_per_request(), false);
      if (!times) return;
      went_.warmup_runs += static_cast<std::int64_t>(times->ms.size());
      medians.push_back(median_of(times->ms));
      if (is_steady(medians, 2 * protocol_.target)) return;
      const double passed = seconds(session_.clock.now() - start);
      const bool cold = went_.warmup_runs < kLeastWarmupRuns && passed < protocol_.max_warmup_s;
      if (passed >= limit && !cold) {
        return note(
            fmt::format("the warm-up was ended after {:.3g} s, before it was steady", passed));
      }
    }
  }

  void run_round() {
    if (is_done()) return;
    const auto start = session_.clock.now();
    run_plain();
    if (protocol_.operators && !failed_) run_profiled();
    measured_s_ += seconds(session_.clock.now() - start);
    if (!failed_ && (measured_s_ >= next_look_s_ || is_done())) look();
  }

  /// No more rounds are possible.
  bool is_done() const { return failed_ || std::ssize(run_ms_) >= protocol_.max_runs; }
  bool is_settled() const {
    const bool profiled = !protocol_.operators || profile_.is_complete();
    return failed_ || (settled_looks_ >= needed_looks_ && profiled);
  }

  const std::vector<double>& round_medians() const { return round_medians_; }
  bool has_failed() const { return failed_; }

  Measurement finish() {
    if (loaded_) {
      const auto unloaded = subject_.runtime.unload();
      if (!unloaded && !failed_) note("unloading failed: " + unloaded.error().message);
    }
    went_.conditions = conditions_between(before_, read_system_state(session_.root));
    record_.runs = std::ssize(run_ms_);
    if (!failed_ && run_ms_.empty()) fail_with("no run was measured");
    if (!failed_ && !assessment_.settled) look();
    if (!failed_) fill_in_numbers();
    keep_circumstances(record_, went_);
    return std::move(record_);
  }

 private:
  void look() {
    assessment_ = assess(run_ms_, measured_s_, protocol_);
    settled_looks_ = assessment_.settled ? settled_looks_ + 1 : 0;
    needed_looks_ = looks_needed();
    next_look_s_ = measured_s_ * kLookGrowth;
  }

  // Of a machine that changes its speed slowly, a short look sees but one phase, and is sure of it.
  int looks_needed() const {
    const bool correlated = 2 * independent_runs(run_ms_) < static_cast<double>(run_ms_.size());
    return correlated ? kLooksIfCorrelated : 1;
  }

  int runs_per_request() const {
    if (!(last_run_ms_ > 0)) return 1;
    const double runs = std::round(protocol_.request_ms / last_run_ms_);
    return static_cast<int>(std::clamp(runs, 1.0, double{kMostRunsPerRequest}));
  }

  int runs_of_single_request() const {
    const bool quick = kLeastRunsPerRequest * last_run_ms_ <= kLongRequestMs;
    return quick ? std::max(runs_per_request(), kLeastRunsPerRequest) : runs_per_request();
  }

  std::optional<RunTimes> request(int runs, bool per_operator) {
    auto times = subject_.runtime.run(runs, per_operator);
    if (!times) {
      fail_with(std::move(times.error()));
      return std::nullopt;
    }
    if (std::ssize(times->ms) != runs) {
      fail_with(fmt::format("the runtime told {} times for {} runs", times->ms.size(), runs));
      return std::nullopt;
    }
    const auto bad = std::ranges::find_if_not(times->ms, core::is_time_ms);
    if (bad != times->ms.end()) {
      fail_with(fmt::format("the runtime told that a run took {} ms", *bad));
      return std::nullopt;
    }
    if (times->peak_memory_bytes > record_.peak_memory_bytes.value_or(0))
      record_.peak_memory_bytes = times->peak_memory_bytes;
    // A fast run in ten thousand cannot be known from none; half a microsecond keeps requests
    // small.
    last_run_ms_ = std::max(median_of(times->ms), 5e-4);
    return *std::move(times);
  }

  // In the milliseconds that matter to who wants to stop, and what is left of one.
  void rest() const {
    const std::chrono::duration<double, std::milli> pause(protocol_.pause_ms);
    const auto whole = std::chrono::floor<std::chrono::milliseconds>(pause);
    if (whole.count() > 0 && !core::sleep_unless_stopped(whole, session_.stop)) return;
    if (pause > whole) std::this_thread::sleep_for(pause - whole);
  }

  void run_plain() {
    rest();
    const auto left = protocol_.max_runs - std::ssize(run_ms_);
    const int wanted = protocol_.sessions > 1 ? runs_of_single_request() : runs_per_request();
    const int runs = static_cast<int>(std::min<std::int64_t>(wanted, left));
    const bool metered = start_meter();
    const auto times = request(runs, false);
    if (metered) stop_meter(times ? runs : 0);
    if (!times) return;
    run_ms_.insert(run_ms_.end(), times->ms.begin(), times->ms.end());
    round_medians_.push_back(median_of(times->ms));
  }

  void run_profiled() {
    auto times = request(runs_of_single_request(), true);
    if (!times) return;
    if (auto ok = profile_.add(*std::move(times)); !ok) fail_with(std::move(ok.error()));
  }

  bool start_meter() {
    if (subject_.energy == nullptr || meter_failed_) return false;
    const auto started = subject_.energy->start();
    if (!started) give_up_meter(started.error());
    return started.has_value();
  }

  void stop_meter(int runs) {
    const auto millijoules = subject_.energy->stop();
    if (!millijoules) return give_up_meter(millijoules.error());
    if (!(*millijoules >= 0 && *millijoules <= core::kPlausibleEnergyMj.most))
      return give_up_meter({ErrorCode::device_failed,
                            fmt::format("the meter says {:g} mJ for {} runs", *millijoules, runs)});
    energy_mj_ += *millijoules;
    energy_runs_ += runs;
  }

  void give_up_meter(const Error& error) {
    meter_failed_ = true;
    note(fmt::format("no energy: {}", error.message));
  }

  void fill_in_numbers() {
    record_.latency = latency_of(run_ms_);
    went_.outliers = count_outliers(run_ms_);
    went_.drift = drift_of(run_ms_);
    went_.bimodal = is_bimodal(run_ms_);
    record_.status = assessment_.settled ? MeasurementStatus::ok : MeasurementStatus::unstable;
    record_.reason = assessment_.problem;
    if (energy_runs_ > 0 && !meter_failed_) {
      record_.energy = Energy{.mj = energy_mj_ / static_cast<double>(energy_runs_),
                              .source = subject_.energy->source(),
                              .meter = subject_.energy->name()};
    }
    if (went_.bimodal) {
      note("the runs fall into two groups, as if throttled: the mean tells what a run costs");
    }
    if (went_.conditions.steal_share.value_or(0) > kNotableSteal) {
      note(fmt::format("the hypervisor gave {:.0f} % of the CPU time to others",
                       100 * *went_.conditions.steal_share));
    }
    if (protocol_.operators) fill_in_operators();
  }

  void fill_in_operators() {
    if (!profile_.has_operators()) return note("the runtime tells no times of operators");
    record_.operators = profile_.operators();
    const double sum =
        std::accumulate(record_.operators.begin(), record_.operators.end(), 0.0,
                        [](double all, const OperatorTime& op) { return all + op.ms; });
    // Being profiled takes time between operators, too, which the network by itself does not.
    const double median = record_.latency->median_ms;
    record_.overhead_ms = std::max(0.0, std::min(profile_.median_ms(), median) - sum);
    const double whole = sum + *record_.overhead_ms;
    if (std::abs(whole - median) <= kProfileTolerance * median) return;
    note(fmt::format("operators and overhead add up to {:.4g} ms, {:+.0f} % from the median", whole,
                     100 * (whole / median - 1)));
  }

  void note(std::string text) { went_.notes.push_back(std::move(text)); }

  const Subject& subject_;
  const Protocol& protocol_;
  const Session& session_;
  Measurement record_;
  Circumstances went_;
  SystemState before_;
  Assessment assessment_;
  Profile profile_;
  std::vector<double> run_ms_;
  std::vector<double> round_medians_;
  double last_run_ms_ = 0;
  double measured_s_ = 0;
  double next_look_s_ = 0;
  int settled_looks_ = 0;
  int needed_looks_ = 1;
  double energy_mj_ = 0;
  std::int64_t energy_runs_ = 0;
  bool meter_failed_ = false;
  bool loaded_ = false;
  bool failed_ = false;
};

bool shares_runtime(std::span<const Subject> subjects, std::size_t index) {
  const Runtime* runtime = &subjects[index].runtime;
  return std::ranges::count_if(subjects, [&](const auto& s) { return &s.runtime == runtime; }) > 1;
}

void run_rounds(std::vector<Course>& courses, const Protocol& protocol, const Session& session) {
  const double limit = protocol.max_time_s * static_cast<double>(courses.size());
  const auto start = session.clock.now();
  for (auto& course : courses) course.warm_up();
  for (bool forwards = true; !session.stop.stop_requested(); forwards = !forwards) {
    for (std::size_t i = 0; i < courses.size() && !session.stop.stop_requested(); ++i) {
      courses[forwards ? i : courses.size() - 1 - i].run_round();
    }
    if (std::ranges::all_of(courses, [](const Course& c) { return c.is_done(); })) return;
    if (std::ranges::all_of(courses, [](const Course& c) { return c.is_settled() || c.is_done(); }))
      return;
    if (seconds(session.clock.now() - start) >= limit) return;
  }
}

std::string too_wide(double half_width, const Protocol& protocol) {
  return fmt::format("the 95 % interval of the median is ±{:.2g} %, the target ±{:.2g} %",
                     100 * half_width, 100 * protocol.target);
}

}  // namespace

Assessment assess(std::span<const double> run_ms, double measured_s, const Protocol& protocol) {
  const auto unsettled = [&](const std::string& what) {
    return Assessment{
        .problem = fmt::format("after {} runs in {:.3g} s {}", run_ms.size(), measured_s, what)};
  };
  if (std::ssize(run_ms) < protocol.min_runs) {
    return unsettled(fmt::format("there are fewer than {} runs", protocol.min_runs));
  }
  // Each half may be off by as much as the interval of the whole.
  const auto drift = drift_of(run_ms);
  if (drift.significant && std::abs(drift.relative) > 2 * protocol.target) {
    return unsettled(fmt::format("the second half is {:.2g} % {} than the first",
                                 100 * std::abs(drift.relative),
                                 drift.relative > 0 ? "slower" : "faster"));
  }
  // Phases of the machine that last for many runs make those runs tell no more than one.
  if (const double independent = independent_runs(run_ms); independent < protocol.min_runs) {
    return unsettled(
        fmt::format("their times hang together so much that they tell no more than "
                    "{:.1f} runs would, {} are needed",
                    independent, protocol.min_runs));
  }
  const double median = median_of(run_ms);
  const double half_width = relative_half_width(median_interval(run_ms), median);
  if (half_width > protocol.target) {
    std::string what = too_wide(half_width, protocol);
    const double mean = mean_of(run_ms);
    if (relative_half_width(mean_interval(run_ms), mean) <= protocol.target) {
      what += fmt::format(" (the mean has settled at {:.4g} ms)", mean);
    }
    return unsettled(what);
  }
  const bool enough = std::ssize(run_ms) >= protocol.max_runs;
  if (!enough && measured_s < protocol.min_time_s) {
    return unsettled(fmt::format("less than {:.3g} s were measured", protocol.min_time_s));
  }
  if (!enough && measured_s < protocol.mean_time_s && is_bimodal(run_ms)) {
    return unsettled(fmt::format("the runs fall into two groups, whose mean needs {:.3g} s",
                                 protocol.mean_time_s));
  }
  return {.settled = true};
}

Comparison compare_rounds(std::span<const double> subject, std::span<const double> first) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(subject.size(), first.size()); ++i) {
    if (first[i] > 0) ratios.push_back(subject[i] / first[i]);
  }
  if (ratios.empty()) return {};
  return {
      .ratio = median_of(ratios), .ci95 = median_interval(ratios), .rounds = std::ssize(ratios)};
}

Interleaved measure_interleaved(std::span<const Subject> subjects, const Protocol& protocol,
                                const Session& session) {
  std::vector<Course> courses;
  courses.reserve(subjects.size());
  for (const auto& subject : subjects) courses.emplace_back(subject, protocol, session);
  const auto checked = check(protocol);
  for (std::size_t i = 0; i < courses.size(); ++i) {
    if (!checked) courses[i].fail_with(checked.error().message);
    if (shares_runtime(subjects, i)) {
      courses[i].fail_with("two models cannot be measured in turns on one runtime");
    }
    if (!courses[i].has_failed()) courses[i].load();
  }
  run_rounds(courses, protocol, session);

  Interleaved result;
  for (auto& course : courses) {
    if (session.stop.stop_requested()) course.fail_with(kCancelled);
    result.against_first.push_back(
        course.has_failed() || courses.front().has_failed()
            ? Comparison{}
            : compare_rounds(course.round_medians(), courses.front().round_medians()));
    result.measurements.push_back(course.finish());
  }
  return result;
}

Measurement measure_model(const Subject& subject, const Protocol& protocol,
                          const Session& session) {
  auto result = measure_interleaved(std::span(&subject, 1), protocol, session);
  return std::move(result.measurements.front());
}

}  // namespace fleetfit::measure
