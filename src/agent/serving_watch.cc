#include "agent/serving_watch.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/sleep.h"

namespace fleetfit::agent {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 200ms;
constexpr int kIntervalsOfLatency = 5;

}  // namespace

ServingWatch::ServingWatch(app::Serving& serving, const std::filesystem::path& events,
                           Reporter& reporter)
    : serving_(serving),
      reporter_(reporter),
      events_(events),
      thread_([this](const std::stop_token& end) { watch(end); }) {}

ServingWatch::~ServingWatch() {
  thread_.request_stop();
  thread_.join();
  pass_on_events();
  tell_latency();
}

void ServingWatch::watch(const std::stop_token& end) {
  for (int i = 1; core::sleep_unless_stopped(kInterval, end); ++i) {
    pass_on_events();
    if (i % kIntervalsOfLatency == 0) tell_latency();
  }
}

void ServingWatch::pass_on_events() {
  events_.clear();  // the file has grown since its end was seen
  for (char c = 0; events_.get(c);) {
    if (c != '\n') {
      line_ += c;
      continue;
    }
    const auto event = nlohmann::json::parse(std::exchange(line_, {}), nullptr, false);
    if (!event.is_object()) continue;
    const bool is_switch = event.value("event", "") == "switch";
    reporter_.event(is_switch ? "switch" : "serving", event);
  }
}

/// The latency that is watched: what is expected of the subnet, times how much longer it takes now.
void ServingWatch::tell_latency() {
  const auto summary = serving_.summary();
  const auto& report = summary.report;
  const auto used = std::ranges::find(report.subnets, report.subnet, &adapt::SubnetUse::subnet);
  if (!report.ratio || used == report.subnets.end()) return;
  reporter_.event("latency", {{"latency_ms", *report.ratio * used->estimated_ms},
                              {"budget_ms", summary.budget_ms},
                              {"subnet", report.subnet},
                              {"accuracy", used->accuracy},
                              {"requests", report.requests - requests_}});
  requests_ = report.requests;
}

}  // namespace fleetfit::agent
