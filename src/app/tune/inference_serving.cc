#include <chrono>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "app/tune/batch_runners.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/measure/runtime.h"

namespace fleetfit::app {
namespace {

struct Plan {
  tune::Scenario scenario = {};
  std::int64_t batch = 1;
  tune::RealRun run = {};
  BatchRunners runners = {};
};

Status load_models(const core::JsonView& json, BatchRunners& runners) {
  FLEETFIT_ASSIGN(const auto threads, json.integer("threads", {.min = 1, .max = 1024}));
  FLEETFIT_ASSIGN(auto kernels, json.text("kernels"));
  FLEETFIT_ASSIGN(auto known, json.text_or("known_choices", ""));
  const measure::LoadOptions options{.threads = static_cast<int>(threads),
                                     .kernels = std::move(kernels),
                                     .known_choices = std::move(known)};
  FLEETFIT_ASSIGN(const auto models, json.items("models"));
  for (const auto& model : models) {
    FLEETFIT_ASSIGN(const auto batch, model.integer("batch", {.min = 1}));
    FLEETFIT_ASSIGN(const auto file, model.text("file"));
    auto runtime = measure::make_engine_runtime();
    FLEETFIT_TRY(runtime->load(file, options));
    runners.add(batch, std::move(runtime));
  }
  return {};
}

Result<Plan> read_plan(std::istream& in) {
  std::string line;
  std::getline(in, line);
  FLEETFIT_ASSIGN(const auto document, core::parse_json(line, "plan"));
  const core::JsonView json(document, "plan");
  Plan plan;
  FLEETFIT_ASSIGN(plan.scenario, json.text("scenario").and_then([](const std::string& text) {
    return tune::parse_scenario(text);
  }));
  FLEETFIT_ASSIGN(plan.batch, json.integer("batch", {.min = 1}));
  FLEETFIT_ASSIGN(plan.run.seconds, json.number("seconds"));
  FLEETFIT_ASSIGN(const auto seed, json.integer("seed", {.min = 0}));
  plan.run.seed = static_cast<std::uint64_t>(seed);
  FLEETFIT_TRY(load_models(json, plan.runners));
  return plan;
}

/// A line that somebody waits for.
void answer_with(std::ostream& out, const std::string& line) {
  out << line << '\n';
  out.flush();
}

Result<tune::Response> serve_plan(std::istream& in, std::ostream& out) {
  const core::SystemClock clock;
  FLEETFIT_ASSIGN(const auto plan, read_plan(in));
  FLEETFIT_TRY(plan.runners.warm_up(clock));
  answer_with(out, R"({"ready":true})");
  std::string go;
  std::getline(in, go);
  const tune::RealServer server{.clock = clock,
                                .execute = [&](std::int64_t n) { return plan.runners.run(n); }};
  return tune::serve_for_real(plan.scenario, plan.batch, server, plan.run);
}

}  // namespace

Status BatchRunners::warm_up(const core::Clock& clock) const {
  constexpr int kRuns = 5;
  constexpr std::chrono::milliseconds kLongest{500};
  for (const auto& [batch, runtime] : by_batch_) {
    const auto start = clock.now();
    for (int i = 0; i < kRuns && clock.now() - start < kLongest; ++i) {
      FLEETFIT_TRY(runtime->run(1, false));
    }
  }
  return {};
}

Status serve_inference_plan(std::istream& in, std::ostream& out) {
  const auto response = serve_plan(in, out);
  nlohmann::ordered_json reply;
  if (response) {
    reply["response"] = core::to_json(*response);
  } else {
    reply["error"] = response.error().message;
  }
  answer_with(out, reply.dump());
  if (!out) return fail(ErrorCode::io, "the answer could not be written");
  return {};
}

}  // namespace fleetfit::app
