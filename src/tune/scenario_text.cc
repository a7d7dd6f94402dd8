#include <fmt/format.h>

#include <charconv>

#include "fleetfit/core/fields.h"
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

core::Fields fields_of(const RunSpread*) {
  static constexpr core::Field kAll[] = {core::field<&RunSpread::mean_ms>("mean"),
                                         core::field<&RunSpread::p90_ms>("p90"),
                                         core::field<&RunSpread::p99_ms>("p99")};
  return {.all = kAll};
}

core::Fields fields_of(const Response*) {
  static constexpr core::Field kAll[] = {
      core::field<&Response::mean_ms>("mean_ms"),
      core::field<&Response::p95_ms>("p95_ms"),
      core::field<&Response::p99_ms>("p99_ms"),
      core::field<&Response::throughput>("throughput"),
      core::field<&Response::busy>("busy"),
      core::field<&Response::run_ms>("run_ms"),
      core::field<&Response::run_samples>("run_samples"),
      core::field<&Response::samples>("samples").from(0),
      core::field<&Response::saturated>("saturated"),
      core::field<&Response::energy_mj>("energy_mj").omit_default()};
  return {.all = kAll};
}

}  // namespace fleetfit::tune
