#include "fleetfit/measure/exec_runtime.h"

#include <fmt/format.h>

#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "fleetfit/graph/npy.h"
#include "measure/runtime_messages.h"

namespace fleetfit::measure {
namespace {

using core::JsonView;
using nlohmann::json;

constexpr std::size_t kMostRequestBytes = std::size_t{1} << 20;
constexpr int kMostRequestDepth = 20;

Result<json> answer_info(Runtime& runtime) { return runtime.info().map(info_reply); }

Result<json> answer_load(Runtime& runtime, const JsonView& request) {
  FLEETFIT_ASSIGN(const auto model, request.text("model"));
  FLEETFIT_ASSIGN(const auto options, read_load_options(request));
  FLEETFIT_ASSIGN(const auto loaded, runtime.load(model, options));
  return json{{"choices", loaded.choices}};
}

Result<json> answer_run(Runtime& runtime, const JsonView& request) {
  FLEETFIT_ASSIGN(const auto runs, request.integer("runs", {.min = 1, .max = kMostRuns}));
  FLEETFIT_ASSIGN(const auto per_operator, request.boolean_or("per_operator", false));
  return runtime.run(static_cast<int>(runs), per_operator).map(run_reply);
}

Result<std::vector<NamedValue>> read_inputs(const JsonView& request) {
  FLEETFIT_ASSIGN(const auto members, request.at("inputs").and_then(
                                          [](const JsonView& view) { return view.members(); }));
  std::vector<NamedValue> inputs;
  for (const auto& member : members) {
    FLEETFIT_ASSIGN(const auto file, member.value.as_text());
    FLEETFIT_ASSIGN(auto value, graph::read_npy(file));
    inputs.push_back({member.key, std::move(value)});
  }
  return inputs;
}

Result<json> answer_compute(Runtime& runtime, const JsonView& request) {
  FLEETFIT_ASSIGN(const auto inputs, read_inputs(request));
  FLEETFIT_ASSIGN(const auto folder, request.text("folder"));
  FLEETFIT_ASSIGN(const auto outputs, runtime.compute(inputs));
  json files = json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [name, value] = outputs[i];
    const auto file = fmt::format("output_{}.npy", i);
    if (auto written = graph::write_npy(std::filesystem::path(folder) / file, value); !written) {
      return tl::unexpected(std::move(written.error()));
    }
    files.push_back({{"name", name}, {"file", file}});
  }
  return json{{"outputs", std::move(files)}};
}

Result<json> answer_unload(Runtime& runtime) {
  return runtime.unload().map([] { return json::object(); });
}

Result<json> answer(Runtime& runtime, const JsonView& request) {
  FLEETFIT_ASSIGN(const auto op, request.text("op"));
  if (op == "info") return answer_info(runtime);
  if (op == "load") return answer_load(runtime, request);
  if (op == "run") return answer_run(runtime, request);
  if (op == "compute") return answer_compute(runtime, request);
  if (op == "unload") return answer_unload(runtime);
  return fail(ErrorCode::unsupported, fmt::format("there is no op '{}'", last_words(op, 100)));
}

/// The id of a request; null where it has none.
json id_of(const JsonView& request) {
  const auto id = request.integer("id");
  return id ? json(*id) : json(nullptr);
}

std::string format_reply(json id, Result<json> result) {
  json reply = result ? std::move(*result) : json{{"error", error_reply(result.error())}};
  reply["id"] = std::move(id);
  reply["ok"] = result.has_value();
  return core::format_json_line(reply);
}

struct Line {
  std::string text;
  bool too_long = false;
};

/// The next line, of which no more is kept than a request may have; nothing at the end.
std::optional<Line> read_line(std::istream& in) {
  using Traits = std::istream::traits_type;
  auto* source = in.rdbuf();
  Line line;
  auto c = source->sbumpc();
  if (Traits::eq_int_type(c, Traits::eof())) return std::nullopt;
  for (; !Traits::eq_int_type(c, Traits::eof()) && Traits::to_char_type(c) != '\n';
       c = source->sbumpc()) {
    line.too_long = line.too_long || line.text.size() == kMostRequestBytes;
    if (!line.too_long) line.text.push_back(Traits::to_char_type(c));
  }
  return line;
}

}  // namespace

std::string answer_request(Runtime& runtime, std::string_view line) {
  const auto document = core::parse_json(
      line, "request", {.max_bytes = kMostRequestBytes, .max_depth = kMostRequestDepth});
  if (!document) return format_reply(nullptr, tl::unexpected(document.error()));
  const JsonView request(*document, "request");
  auto id = id_of(request);
  if (id.is_null()) {
    return format_reply(nullptr, request.error("it is no object with a whole number as id"));
  }
  return format_reply(std::move(id), answer(runtime, request));
}

Status serve_runtime(Runtime& runtime, std::istream& in, std::ostream& out) {
  while (const auto line = read_line(in)) {
    const auto reply =
        line->too_long
            ? format_reply(nullptr, fail(ErrorCode::invalid_input,
                                         fmt::format("request: it is longer than {} bytes",
                                                     kMostRequestBytes)))
            : answer_request(runtime, line->text);
    out << reply << '\n' << std::flush;
    if (!out) return fail(ErrorCode::io, "a reply could not be written");
  }
  return {};
}

}  // namespace fleetfit::measure
