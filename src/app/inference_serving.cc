#include <chrono>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "app/batch_runners.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/json.h"
#include "fleetfit/measure/engine_runtime.h"

namespace fleetfit::app {
namespace {

struct Plan {
  tune::Scenario scenario = {};
  std::int64_t batch = 1;
  tune::RealRun run = {};
  BatchRunners runners = {};
};

Status load_models(const core::JsonView& json, BatchRunners& runners) {
  const auto threads = json.integer("threads", {.min = 1, .max = 1024});
  if (!threads) return tl::unexpected(threads.error());
  auto kernels = json.text("kernels");
  if (!kernels) return tl::unexpected(std::move(kernels.error()));
  auto known = json.text_or("known_choices", "");
  if (!known) return tl::unexpected(std::move(known.error()));
  const measure::LoadOptions options{.threads = static_cast<int>(*threads),
                                     .kernels = *std::move(kernels),
                                     .known_choices = *std::move(known)};
  const auto models = json.items("models");
  if (!models) return tl::unexpected(models.error());
  for (const auto& model : *models) {
    const auto batch = model.integer("batch", {.min = 1});
    if (!batch) return tl::unexpected(batch.error());
    const auto file = model.text("file");
    if (!file) return tl::unexpected(file.error());
    auto runtime = measure::make_engine_runtime();
    if (const auto loaded = runtime->load(*file, options); !loaded)
      return tl::unexpected(loaded.error());
    runners.add(*batch, std::move(runtime));
  }
  return {};
}

Result<Plan> read_plan(std::istream& in) {
  std::string line;
  std::getline(in, line);
  const auto document = core::parse_json(line, "plan");
  if (!document) return tl::unexpected(document.error());
  const core::JsonView json(*document, "plan");
  Plan plan;
  const auto scenario = json.text("scenario").and_then([](const std::string& text) {
    return tune::parse_scenario(text);
  });
  if (!scenario) return tl::unexpected(scenario.error());
  plan.scenario = *scenario;
  const auto batch = json.integer("batch", {.min = 1});
  if (!batch) return tl::unexpected(batch.error());
  plan.batch = *batch;
  const auto seconds = json.number("seconds");
  if (!seconds) return tl::unexpected(seconds.error());
  plan.run.seconds = *seconds;
  const auto seed = json.integer("seed", {.min = 0});
  if (!seed) return tl::unexpected(seed.error());
  plan.run.seed = static_cast<std::uint64_t>(*seed);
  if (auto ok = load_models(json, plan.runners); !ok) return tl::unexpected(ok.error());
  return plan;
}

/// A line that somebody waits for.
void say(std::ostream& out, const std::string& line) {
  out << line << '\n';
  out.flush();
}

Result<tune::Response> serve_plan(std::istream& in, std::ostream& out) {
  const core::SystemClock clock;
  const auto plan = read_plan(in);
  if (!plan) return tl::unexpected(plan.error());
  if (auto ok = plan->runners.warm_up(clock); !ok) return tl::unexpected(ok.error());
  say(out, R"({"ready":true})");
  std::string go;
  std::getline(in, go);
  const tune::RealServer server{.clock = clock,
                                .execute = [&](std::int64_t n) { return plan->runners.run(n); }};
  return tune::serve_for_real(plan->scenario, plan->batch, server, plan->run);
}

}  // namespace

Status BatchRunners::warm_up(const core::Clock& clock) const {
  constexpr int kRuns = 5;
  constexpr std::chrono::milliseconds kLongest{500};
  for (const auto& [batch, runtime] : by_batch_) {
    const auto start = clock.now();
    for (int i = 0; i < kRuns && clock.now() - start < kLongest; ++i) {
      if (const auto ran = runtime->run(1, false); !ran) return tl::unexpected(ran.error());
    }
  }
  return {};
}

Status serve_inference_plan(std::istream& in, std::ostream& out) {
  const auto response = serve_plan(in, out);
  nlohmann::ordered_json reply;
  if (response) {
    reply["response"] = tune::to_json(*response);
  } else {
    reply["error"] = response.error().message;
  }
  say(out, reply.dump());
  if (!out) return fail(ErrorCode::io, "the answer could not be written");
  return {};
}

}  // namespace fleetfit::app
