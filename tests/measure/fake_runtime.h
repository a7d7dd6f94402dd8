#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/measure/runtime.h"
#include "tests/core/fake_clock.h"

namespace fleetfit::measure {

/// Runs that take as long as a function says, by the fake clock.
class FakeRuntime final : public Runtime {
 public:
  using TimeOf = std::function<double(int run)>;  ///< milliseconds of run number `run`, from 0

  FakeRuntime(core::FakeClock& clock, TimeOf time_of)
      : clock_(clock), time_of_(std::move(time_of)) {}

  std::optional<int> fails_at = std::nullopt;  ///< the run that breaks it
  std::optional<Error> load_error = std::nullopt;
  std::vector<OperatorTime> operators = {};  ///< shares of a run's time in `ms`
  double profiling_cost = 1;                 ///< a profiled run takes so many times as long
  std::function<void(int run)> before_run = {};
  bool loses_a_time = false;
  /// Changes the operators of each profiled request.
  std::function<void(std::vector<OperatorTime>&)> change_operators = {};

  int runs() const { return runs_; }
  int unloads() const { return unloads_; }
  const std::vector<int>& requests() const { return requests_; }

  Result<RuntimeInfo> info() override { return RuntimeInfo{"fake", "1", ""}; }

  Result<LoadedModel> load(const std::filesystem::path&, const LoadOptions&) override {
    if (load_error) return tl::unexpected(*load_error);
    return LoadedModel{.choices = "chosen"};
  }

  Result<RunTimes> run(int runs, bool per_operator) override {
    RunTimes times{.peak_memory_bytes = 1000 + runs_};
    requests_.push_back(runs);
    double sum = 0;
    for (int i = 0; i < runs; ++i, ++runs_) {
      if (before_run) before_run(runs_);
      if (runs_ == fails_at) return fail(ErrorCode::device_failed, "the runtime died of signal 9");
      const double ms = time_of_(runs_) * (per_operator ? profiling_cost : 1);
      clock_.advance(std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6)));
      times.ms.push_back(ms);
      sum += ms;
    }
    if (per_operator) {
      times.operators = operators;
      for (auto& op : times.operators) op.ms *= sum / runs;
      if (change_operators) change_operators(times.operators);
    }
    if (loses_a_time) times.ms.pop_back();
    return times;
  }

  Result<std::vector<NamedValue>> compute(std::span<const NamedValue>) override {
    return fail(ErrorCode::unsupported, "a fake computes nothing");
  }

  Status unload() override {
    ++unloads_;
    return {};
  }

 private:
  core::FakeClock& clock_;
  TimeOf time_of_;
  int runs_ = 0;
  int unloads_ = 0;
  std::vector<int> requests_;
};

}  // namespace fleetfit::measure
