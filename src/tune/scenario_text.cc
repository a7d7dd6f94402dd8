#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "fleetfit/tune/scenario.h"

namespace fleetfit::tune {
namespace {

tl::unexpected<Error> no_scenario(std::string_view text) {
  return fail(ErrorCode::invalid_input,
              fmt::format("'{}' is no scenario; there are single, offline, server:SAMPLES@PERIODms "
                          "and multistream:RATEhz",
                          text));
}

/// The positive number that `text` is, but for a unit behind it.
template <class T>
std::optional<T> positive(std::string_view text, std::string_view unit) {
  if (text.ends_with(unit)) text.remove_suffix(unit.size());
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value > 0) || value > static_cast<T>(1'000'000'000)) return std::nullopt;
  return value;
}

std::optional<Scenario> parse_server(std::string_view arguments) {
  const auto at = arguments.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto samples = positive<std::int64_t>(arguments.substr(0, at), "");
  const auto period = positive<double>(arguments.substr(at + 1), "ms");
  if (!samples || !period || *samples > 1'000'000) return std::nullopt;
  return Scenario{.kind = ScenarioKind::server, .samples = *samples, .period_ms = *period};
}

std::optional<Scenario> parse_multistream(std::string_view arguments) {
  const auto rate = positive<double>(arguments, "hz");
  if (!rate) return std::nullopt;
  return Scenario{.kind = ScenarioKind::multistream, .rate_hz = *rate};
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text) {
  if (text == "single") return Scenario{.kind = ScenarioKind::single};
  if (text == "offline") return Scenario{.kind = ScenarioKind::offline};
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return no_scenario(text);
  const auto arguments = text.substr(colon + 1);
  const auto scenario = text.substr(0, colon) == "server"        ? parse_server(arguments)
                        : text.substr(0, colon) == "multistream" ? parse_multistream(arguments)
                                                                 : std::nullopt;
  if (!scenario) return no_scenario(text);
  return *scenario;
}

std::string describe(const Scenario& scenario) {
  if (scenario.kind == ScenarioKind::server)
    return fmt::format("server:{}@{}ms", scenario.samples, scenario.period_ms);
  if (scenario.kind == ScenarioKind::multistream)
    return fmt::format("multistream:{}hz", scenario.rate_hz);
  return std::string(to_string(scenario.kind));
}

nlohmann::ordered_json to_json(const Response& response) {
  nlohmann::ordered_json json = {{"mean_ms", response.mean_ms},
                                 {"p95_ms", response.p95_ms},
                                 {"p99_ms", response.p99_ms},
                                 {"throughput", response.throughput},
                                 {"busy", response.busy},
                                 {"run_ms", response.run_ms},
                                 {"run_samples", response.run_samples},
                                 {"samples", response.samples},
                                 {"saturated", response.saturated}};
  if (response.energy_mj) json["energy_mj"] = *response.energy_mj;
  return json;
}

Result<Response> response_from_json(const core::JsonView& json) {
  Response response;
  const std::pair<const char*, double*> numbers[] = {{"mean_ms", &response.mean_ms},
                                                     {"p95_ms", &response.p95_ms},
                                                     {"p99_ms", &response.p99_ms},
                                                     {"throughput", &response.throughput},
                                                     {"busy", &response.busy},
                                                     {"run_ms", &response.run_ms},
                                                     {"run_samples", &response.run_samples}};
  for (const auto& [key, out] : numbers) {
    FLEETFIT_ASSIGN(*out, json.number(key));
  }
  FLEETFIT_ASSIGN(response.saturated, json.boolean("saturated"));
  FLEETFIT_ASSIGN(response.samples, json.integer("samples", {.min = 0}));
  FLEETFIT_ASSIGN(const auto energy, json.find("energy_mj"));
  if (energy) {
    FLEETFIT_ASSIGN(response.energy_mj, energy->as_number());
  }
  return response;
}

}  // namespace fleetfit::tune
