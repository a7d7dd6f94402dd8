#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/job_place.h"
#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/adapt/pool.h"
#include "fleetfit/adapt/timers.h"
#include "fleetfit/app/adapting.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/app/measuring.h"
#include "fleetfit/app/probing.h"
#include "fleetfit/app/serving.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/sleep.h"
#include "fleetfit/elastic/bundle.h"

namespace fleetfit::agent {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr auto kInterval = 200ms;
constexpr int kIntervalsOfLatency = 5;

/// While it lives, reports on a bundle that is being served: switches as they happen, the latency
/// every second. Borrows all.
class ServingWatch {
 public:
  ServingWatch(app::Serving& serving, const std::filesystem::path& events, Reporter& reporter);
  ServingWatch(const ServingWatch&) = delete;
  ServingWatch& operator=(const ServingWatch&) = delete;
  ~ServingWatch();

 private:
  void watch(const std::stop_token& end);
  void pass_on_events();
  void tell_latency();

  app::Serving& serving_;
  Reporter& reporter_;
  std::ifstream events_;
  std::string line_ = {};  // what was read of a line that is not complete
  std::size_t requests_ = 0;
  std::jthread thread_;
};

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

/// The file under the name that it was sent with, which says its format.
Result<fs::path> named(const JobPlace& place, const std::string& hash, const std::string& name) {
  const auto folder = place.folder / "named";
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) fs::create_symlink(fs::absolute(place.file(hash)), folder / name, error);
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", name, error.message()));
  return folder / name;
}

/// The device with these settings.
Result<std::string> device_for(JobPlace& place, const fleet::MeasureJob& job) {
  const auto& settings = job.settings;
  if (settings.runtime.starts_with("exec:") && !place.job.options.allow_exec) {
    return fail(ErrorCode::invalid_input,
                "settings.runtime: this agent runs no programs that a job names (--allow-exec)");
  }
  const app::DeviceRequest request{.name = "settings",
                                   .runtime = settings.runtime,
                                   .threads = settings.threads,
                                   .cores = settings.cores,
                                   .precision = settings.precision,
                                   .cpu_quota_percent = settings.cpu_quota_percent,
                                   .memory_limit = settings.memory_limit};
  const app::DeviceRequest local{.name = "settings"};
  const bool is_local = request.runtime == local.runtime && request.threads == local.threads &&
                        request.cores.empty() && request.precision == local.precision &&
                        !request.cpu_quota_percent && request.memory_limit.empty();
  if (is_local) return std::string(app::kLocalDevice);
  FLEETFIT_TRY(core::within("settings", app::add_device(place.workplace, request)));
  return request.name;
}

struct Performer {
  JobPlace& place;

  Result<Json> operator()(const fleet::ProbeJob& job) const {
    FLEETFIT_ASSIGN(const auto probed,
                    app::probe_this_device(place.workplace, {.seconds = job.seconds},
                                           place.progress, place.stop));
    return app::to_json(probed);
  }

  Result<Json> operator()(const fleet::MeasureJob& job) const {
    FLEETFIT_ASSIGN(const auto file, named(place, job.model, job.name));
    FLEETFIT_ASSIGN(const auto device, device_for(place, job));
    app::MeasureRequest request;
    request.models = {file};
    request.devices = {device};
    request.protocol = measure::protocol_within(job.max_time_s);
    request.protocol.target = job.target_ci_percent / 100;
    request.protocol.operators = job.operators;
    FLEETFIT_ASSIGN(const auto measured,
                    app::measure_models(place.workplace, request, place.progress, place.stop));
    if (measured.empty() || place.stop.stop_requested())
      return fail(ErrorCode::cancelled, "the job was stopped");
    auto json = app::to_json(measured.front());
    json["model"] = job.name;
    if (!job.space.empty()) json["space"] = job.space;
    if (!job.design.empty()) json["design"] = job.design;
    return json;
  }

  Result<Json> operator()(const fleet::ProfileJob& job) const {
    FLEETFIT_ASSIGN(const auto bundle, elastic::read_bundle(place.file(job.bundle),
                                                            {.public_key = place.public_key()}));
    const elastic::SubnetSpace space(bundle.models);
    const auto timer = adapt::make_engine_timer({.threads = job.threads});
    FLEETFIT_ASSIGN(auto table, adapt::profile_branches(bundle.models, space, *timer,
                                                        {.stop = place.stop}, place.progress));
    table.device = place.job.device;
    const auto file = place.folder / "table.json";
    FLEETFIT_TRY(adapt::write_latency_table(table, file));
    FLEETFIT_ASSIGN(const auto json, core::read_json(file));
    return Json(json);
  }

  Result<Json> operator()(const fleet::AdaptJob& job) const {
    const auto pool = place.pool_of(job.bundle);
    std::error_code error;
    fs::create_directories(pool.parent_path(), error);
    const app::AdaptRequest request{.bundle = place.file(job.bundle),
                                    .public_key = place.public_key(),
                                    .data = job.data,
                                    .budget_ms = job.budget_ms,
                                    .strategy = job.strategy,
                                    .pool = pool};
    FLEETFIT_ASSIGN(const auto report,
                    app::adapt_bundle(place.workplace, request, place.progress, place.stop));
    if (report.stopped) return fail(ErrorCode::cancelled, "the job was stopped");
    if (report.best) {
      FLEETFIT_TRY(place.pin(job.bundle));
    }
    auto json = core::to_json(report);
    json["device"] = place.job.device;
    return json;
  }

  Result<Json> operator()(const fleet::RunJob& job) const {
    const auto pool = job.pool.empty() ? place.pool_of(job.bundle) : place.file(job.pool);
    std::error_code error;
    if (!fs::exists(pool, error)) {
      return fail(ErrorCode::not_found,
                  "pool: the device has none of this bundle yet; an adapt or deploy job brings it");
    }
    const auto events = place.folder / "events.jsonl";
    FLEETFIT_ASSIGN(const auto serving,
                    app::open_serving(place.workplace, {.bundle = place.file(job.bundle),
                                                        .public_key = place.public_key(),
                                                        .pool = pool,
                                                        .budget_ms = job.budget_ms,
                                                        .events = events,
                                                        .data = job.data}));
    Status served;
    {
      const ServingWatch watch(*serving, events, place.reporter);
      served = serving->serve_data({.seconds = job.seconds}, place.progress, place.stop);
    }
    FLEETFIT_TRY(served);
    return core::to_json(serving->summary());
  }

  Result<Json> operator()(const fleet::DeployJob& job) const {
    FLEETFIT_ASSIGN(const auto bundle, elastic::read_bundle(place.file(job.bundle),
                                                            {.public_key = place.public_key()}));
    if (!job.pool.empty()) {
      FLEETFIT_TRY(take_pool(job, bundle.manifest_sha256));
    }
    FLEETFIT_TRY(place.pin(job.bundle));
    return Json{{"bundle", job.bundle},
                {"manifest_sha256", bundle.manifest_sha256},
                {"signature", place.public_key() ? "valid" : "not checked"},
                {"models", bundle.models.size()},
                {"pool", !job.pool.empty()}};
  }

  Status take_pool(const fleet::DeployJob& job, const std::string& manifest) const {
    const auto& file = place.file(job.pool);
    FLEETFIT_ASSIGN(const auto pool, adapt::read_pool(file));
    if (pool.bundle_sha256 != manifest)
      return fail(ErrorCode::invalid_input, "pool: it is one of another bundle");
    const auto target = place.pool_of(job.bundle);
    std::error_code error;
    fs::create_directories(target.parent_path(), error);
    return adapt::write_pool(pool, target);
  }
};

}  // namespace

Result<Json> perform(JobPlace& place) {
  return std::visit(Performer{place}, place.job.assignment.request);
}

}  // namespace fleetfit::agent
