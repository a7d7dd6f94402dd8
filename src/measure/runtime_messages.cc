#include "measure/runtime_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/names.h"

namespace fleetfit::measure {
namespace {

using core::JsonView;
using nlohmann::json;

constexpr std::size_t kMostOperators = 100'000;
constexpr std::size_t kMostMessageBytes = 2000;

// An operator may be too quick for the runtime's clock, a run may not.
Result<double> operator_time(const JsonView& view) {
  auto ms = view.as_number();
  if (ms && !(std::isfinite(*ms) && *ms >= 0)) return view.error("a time is negative or infinite");
  return ms;
}

Result<double> run_time(const JsonView& view) {
  auto ms = view.as_number();
  if (ms && !(std::isfinite(*ms) && *ms > 0))
    return view.error("a time is negative, zero or infinite");
  return ms;
}

Result<std::vector<double>> read_times(const JsonView& reply, int runs) {
  FLEETFIT_ASSIGN(const auto items, reply.items("times_ms"));
  if (items.size() != static_cast<std::size_t>(runs)) {
    return reply.error(fmt::format("{} times for {} runs", items.size(), runs));
  }
  std::vector<double> times;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(const auto ms, run_time(item));
    times.push_back(ms);
  }
  return times;
}

Result<OperatorTime> read_operator(const JsonView& view) {
  FLEETFIT_ASSIGN(auto name, view.text("name"));
  FLEETFIT_ASSIGN(auto type, view.text("type"));
  FLEETFIT_ASSIGN(auto kernel, view.text_or("kernel", ""));
  FLEETFIT_ASSIGN(const auto ms, view.at("ms").and_then(operator_time));
  return OperatorTime{
      .name = std::move(name), .type = std::move(type), .kernel = std::move(kernel), .ms = ms};
}

Result<std::vector<OperatorTime>> read_operators(const JsonView& reply) {
  FLEETFIT_ASSIGN(const auto list, reply.find("operators"));
  if (!list) return std::vector<OperatorTime>{};
  FLEETFIT_ASSIGN(const auto items, list->items());
  if (items.size() > kMostOperators) return list->error("absurdly many operators");
  std::vector<OperatorTime> operators;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto read, read_operator(item));
    operators.push_back(std::move(read));
  }
  return operators;
}

}  // namespace

json info_reply(const RuntimeInfo& info) {
  auto reply = core::to_json<json>(info);
  reply["protocol"] = kProtocol;
  return reply;
}

Result<RuntimeInfo> read_info(const JsonView& reply) {
  FLEETFIT_ASSIGN(const auto protocol, reply.integer("protocol"));
  if (protocol != kProtocol) {
    return reply.error(fmt::format("it speaks protocol {}, not {}", protocol, kProtocol));
  }
  RuntimeInfo info;
  for (const auto& [key, place] :
       {std::pair{"name", &info.name}, {"version", &info.version}, {"build", &info.build}}) {
    FLEETFIT_ASSIGN(auto text, reply.text(key));
    *place = std::move(text);
  }
  return info;
}

json load_request(const std::filesystem::path& model, const LoadOptions& options) {
  return {{"model", model.string()},
          {"threads", options.threads},
          {"kernels", options.kernels},
          {"choices", options.known_choices}};
}

Result<LoadOptions> read_load_options(const JsonView& request) {
  FLEETFIT_ASSIGN(const auto threads,
                  request.integer_or("threads", 1, {.min = 1, .max = kMostThreads}));
  FLEETFIT_ASSIGN(auto kernels, request.text_or("kernels", "auto"));
  FLEETFIT_ASSIGN(auto choices, request.text_or("choices", ""));
  return LoadOptions{.threads = static_cast<int>(threads),
                     .kernels = std::move(kernels),
                     .known_choices = std::move(choices)};
}

json run_reply(const RunTimes& times) {
  json reply = {{"times_ms", times.ms}, {"peak_memory_bytes", times.peak_memory_bytes}};
  for (const auto& one : times.operators) {
    reply["operators"].push_back(
        {{"name", one.name}, {"type", one.type}, {"kernel", one.kernel}, {"ms", one.ms}});
  }
  return reply;
}

Result<RunTimes> read_run_times(const JsonView& reply, int runs) {
  FLEETFIT_ASSIGN(auto times, read_times(reply, runs));
  FLEETFIT_ASSIGN(auto operators, read_operators(reply));
  FLEETFIT_ASSIGN(const auto peak, reply.integer_or("peak_memory_bytes", 0, {.min = 0}));
  return RunTimes{
      .ms = std::move(times), .operators = std::move(operators), .peak_memory_bytes = peak};
}

json error_reply(const Error& error) {
  return {{"code", core::to_string(error.code)}, {"message", error.message}};
}

Result<Error> read_error(const JsonView& reply) {
  FLEETFIT_ASSIGN(const auto error, reply.at("error"));
  FLEETFIT_ASSIGN(const auto code, error.text("code"));
  FLEETFIT_ASSIGN(const auto message, error.text("message"));
  return Error{core::parse_name<ErrorCode>(code).value_or(ErrorCode::device_failed),
               last_words(message, kMostMessageBytes)};
}

std::string last_words(std::string_view text, std::size_t most) {
  const auto is_blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  if (text.size() > most) text.remove_prefix(text.size() - most);
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += " | ";
    } else {
      line.push_back(static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c);
    }
  }
  return line;
}

}  // namespace fleetfit::measure
