#include "fleetfit/adapt/requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "fleetfit/core/base64.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/program.h"
#include "fleetfit/graph/npy.h"

namespace fleetfit::adapt {
namespace {

using core::JsonView;
using nlohmann::json;

constexpr int kMostDepth = 12;
constexpr std::size_t kMostIdBytes = 200;

std::size_t elements_of(std::span<const std::int64_t> shape) {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

/// The request's id; null where there is none or none that makes sense.
std::string id_of(const json& document) {
  if (!document.is_object()) return "null";
  const auto id = document.find("id");
  if (id == document.end() || !(id->is_number() || id->is_string())) return "null";
  auto text = core::format_json_line(*id);
  return text.size() <= kMostIdBytes ? text : "null";
}

/// All numbers of lists inside of lists, in their order; one more than `most` at most. False if
/// something else is among them.
bool collect(const json& value, std::size_t most, std::vector<float>& out) {
  if (value.is_array()) {
    return std::ranges::all_of(value, [&](const json& item) { return collect(item, most, out); });
  }
  if (!value.is_number()) return false;
  if (out.size() <= most) out.push_back(value.get<float>());
  return true;
}

Result<std::vector<float>> from_npy(const JsonView& view, std::span<const std::int64_t> shape) {
  FLEETFIT_ASSIGN(const auto text, view.text("npy_base64"));
  const auto bytes = core::decode_base64(text);
  if (!bytes) return view.error("npy_base64: it is not base64");
  FLEETFIT_ASSIGN(const auto value,
                  graph::parse_npy(std::as_bytes(std::span(*bytes)), view.place()));
  const std::span<const std::int64_t> given(value.shape);
  const bool same =
      std::ranges::equal(given, shape) ||
      (!shape.empty() && shape[0] == 1 && std::ranges::equal(given, shape.subspan(1)));
  if (value.dtype != graph::DType::f32 || !same) {
    return view.error(fmt::format("expected float32 [{}], found {} [{}]", fmt::join(shape, ", "),
                                  graph::to_string(value.dtype), fmt::join(given, ", ")));
  }
  const auto values = value.data.as<float>();
  return std::vector<float>(values.begin(), values.end());
}

Result<std::vector<float>> from_numbers(const JsonView& view, std::span<const std::int64_t> shape) {
  const std::size_t count = elements_of(shape);
  std::vector<float> values;
  values.reserve(count);
  if (!view.value().is_array()) return view.error("expected a list of numbers or npy_base64");
  if (!collect(view.value(), count, values))
    return view.error(fmt::format("value {} is not a number", values.size()));
  if (values.size() == count) return values;
  return view.error(fmt::format("expected {} values, found {}", count,
                                values.size() > count ? "more" : fmt::to_string(values.size())));
}

Result<std::vector<float>> parse_input(const JsonView& request,
                                       std::span<const std::int64_t> shape) {
  FLEETFIT_ASSIGN(const auto input, request.at("input"));
  auto values = input.value().is_object() ? from_npy(input, shape) : from_numbers(input, shape);
  if (!values) return values;
  const auto bad = std::ranges::find_if_not(*values, [](float v) { return std::isfinite(v); });
  if (bad == values->end()) return values;
  return input.error(fmt::format("value {} is not a finite number", bad - values->begin()));
}

struct ParsedText {
  std::string id = "null";
  Result<PredictRequest> request;
};

ParsedText parse(std::string_view text, std::span<const std::int64_t> shape) {
  const auto document = core::parse_json(
      text, "request", {.max_bytes = most_request_bytes(shape), .max_depth = kMostDepth});
  if (!document) return {.request = tl::unexpected(document.error())};
  auto id = id_of(*document);
  auto input = parse_input(JsonView(*document, "request"), shape);
  if (!input) return {.id = std::move(id), .request = tl::unexpected(std::move(input.error()))};
  PredictRequest request{.id = id, .input = *std::move(input)};
  return {.id = std::move(id), .request = std::move(request)};
}

Reply refuse(const std::string& id, std::string_view message) {
  const auto text = core::format_json_line(json(core::one_line(std::string(message))));
  return {.json = fmt::format(R"({{"error":{},"id":{}}})", text, id), .ok = false};
}

}  // namespace

std::size_t most_request_bytes(std::span<const std::int64_t> input_shape) {
  constexpr std::size_t kPerValue = 64;
  constexpr std::size_t kOther = 4096;
  return kOther + kPerValue * elements_of(input_shape);
}

Result<PredictRequest> parse_predict_request(std::string_view text,
                                             std::span<const std::int64_t> input_shape) {
  return parse(text, input_shape).request;
}

Reply answer_request(SubnetServer& server, std::span<const std::string> classes,
                     std::string_view text) {
  const auto [id, request] = parse(text, server.input_shape());
  if (!request) return refuse(id, request.error().message);
  const auto answer = server.serve(request->input);
  if (!answer) return refuse(id, answer.error().message);
  json reply = {{"class", nullptr},
                {"scores", answer->scores},
                {"latency_ms", answer->latency_ms},
                {"subnet", answer->subnet},
                {"id", json::parse(id)}};
  if (const auto best = answer->best_class) {
    reply["class"] = *best;
    const auto index = static_cast<std::size_t>(*best);
    if (index < classes.size()) reply["label"] = classes[index];
  }
  return {.json = core::format_json_line(reply)};
}

core::Names names_of(ServingEventKind) {
  using Kind = ServingEventKind;
  static constexpr core::Name kAll[] = {{Kind::started, "started"},
                                        {Kind::switched, "switch"},
                                        {Kind::nothing_fits, "nothing fits"},
                                        {Kind::searched, "new pool"},
                                        {Kind::search_failed, "search failed"},
                                        {Kind::prepare_failed, "prepare failed"}};
  return {.what = "event of serving", .all = kAll};
}

std::string to_json_line(const ServingEvent& event) {
  json line = {{"event", to_string(event.kind)}, {"time", event.time_s}};
  if (!event.from.empty()) line["from"] = event.from;
  if (!event.to.empty()) line["to"] = event.to;
  if (!event.reason.empty()) line["reason"] = event.reason;
  const bool is_switch = event.kind == ServingEventKind::switched;
  if (is_switch || event.kind == ServingEventKind::nothing_fits) line["ratio"] = event.ratio;
  if (is_switch) {
    line["switch_us"] = event.switch_us;
    line["prepared"] = event.prepared;
  }
  return core::format_json_line(line);
}

Reply refusal(std::string_view message) { return refuse("null", message); }

}  // namespace fleetfit::adapt
