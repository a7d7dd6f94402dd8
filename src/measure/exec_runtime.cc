#include "fleetfit/measure/exec_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fleetfit/core/file.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/graph/npy.h"
#include "measure/runtime_messages.h"

namespace fleetfit::measure {
namespace {

using core::JsonView;
using core::Process;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMostReplyBytes = std::size_t{16} << 20;
constexpr int kMostReplyDepth = 20;
constexpr std::size_t kLastWordsBytes = 500;
constexpr milliseconds kGrace{500};        // from asking it to end to killing it
constexpr milliseconds kWaitForEnd{2000};  // for the exit status of one that stopped talking
constexpr double kAnswerSlackS = 10;       // what even the shortest limit leaves for an answer
constexpr double kLoadFactor = 10;
// What rounding and another clock may add to the sum of a request's times.
constexpr double kClockShare = 0.01;
constexpr double kClockMs = 1;

/// A file that a reply names: in the folder itself, nowhere else.
bool is_plain_name(const std::string& file) {
  return !file.empty() && file != "." && file != ".." && file.find('/') == std::string::npos &&
         file.find('\0') == std::string::npos;
}

Result<json> write_inputs(std::span<const NamedValue> inputs, const std::filesystem::path& folder) {
  json files = json::object();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [name, value] = inputs[i];
    const auto file = folder / fmt::format("input_{}.npy", i);
    if (files.contains(name)) {
      return fail(ErrorCode::invalid_input, fmt::format("input {} is given twice", name));
    }
    if (auto written = graph::write_npy(file, value); !written) {
      return core::within(fmt::format("input {}", name), std::move(written.error()));
    }
    files[name] = file.string();
  }
  return files;
}

Result<NamedValue> read_output(const JsonView& output, const std::filesystem::path& folder) {
  FLEETFIT_ASSIGN(auto name, output.text("name"));
  FLEETFIT_ASSIGN(const auto file, output.text("file"));
  if (!is_plain_name(file)) return output.error("the file is not a name in the folder");
  FLEETFIT_ASSIGN(auto value, core::within(output.place(), graph::read_npy(folder / file)));
  return NamedValue{std::move(name), std::move(value)};
}

Result<std::vector<NamedValue>> read_outputs(const JsonView& reply,
                                             const std::filesystem::path& folder) {
  FLEETFIT_ASSIGN(const auto items, reply.items("outputs"));
  std::vector<NamedValue> outputs;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto output, read_output(item, folder));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

milliseconds answer_time(double seconds, double max_time_s, milliseconds most) {
  const double longest = std::max(std::chrono::duration<double>(most).count(), max_time_s);
  return std::chrono::ceil<milliseconds>(
      std::chrono::duration<double>(std::min(seconds + kAnswerSlackS, longest)));
}

Status check_possible(std::span<const double> times_ms, steady_clock::duration request) {
  const double sum = std::accumulate(times_ms.begin(), times_ms.end(), 0.0);
  const double most = std::chrono::duration<double, std::milli>(request).count();
  if (sum <= most * (1 + kClockShare) + kClockMs) return {};
  return fail(ErrorCode::device_failed,
              fmt::format("{} runs are said to have taken {:.6g} ms, but the request for them was "
                          "answered after {:.6g} ms",
                          times_ms.size(), sum, most));
}

class ExecRuntime final : public Runtime {
 public:
  explicit ExecRuntime(ExecRuntimeOptions options) : options_(std::move(options)) {}
  ExecRuntime(const ExecRuntime&) = delete;
  ExecRuntime& operator=(const ExecRuntime&) = delete;
  ~ExecRuntime() override {
    if (!process_) return;
    process_->close_stdin();
    if (!process_->wait(kGrace, options_.stop) && options_.stop.stop_requested()) process_->kill();
  }

  /// Starts the program, which has to be the same as before.
  Status start() {
    FLEETFIT_ASSIGN(auto process,
                    Process::start(options_.command, {.environment = options_.environment,
                                                      .max_line_bytes = kMostReplyBytes,
                                                      .grace = kGrace,
                                                      .leftovers = core::Leftovers::all,
                                                      .prepare = options_.prepare}));
    process_ = std::move(process);
    auto info = ask_info();
    if (!info) {
      process_.reset();
      return tl::unexpected(std::move(info.error()));
    }
    if (info_ && *info != *info_) {
      return give_up("info",
                     fmt::format("{}: it is another runtime now: {} {} ({}), before {} {} ({})",
                                 program(), info->name, info->version, info->build, info_->name,
                                 info_->version, info_->build));
    }
    info_ = std::move(*info);
    return {};
  }

  Result<RuntimeInfo> info() override { return *info_; }

  Result<LoadedModel> load(const std::filesystem::path& model,
                           const LoadOptions& options) override {
    loaded_ = false;
    if (!process_) {
      FLEETFIT_TRY(start());
    }
    std::error_code ignored;
    auto absolute = std::filesystem::absolute(model, ignored);
    FLEETFIT_ASSIGN(const auto reply,
                    ask("load", load_request(absolute, options), options_.timeouts.load));
    auto choices = view(reply, "load").text_or("choices", "");
    if (!choices) return give_up("load", choices.error().message);
    loaded_ = true;
    return LoadedModel{.choices = std::move(*choices)};
  }

  Result<RunTimes> run(int runs, bool per_operator) override {
    FLEETFIT_TRY(check_loaded());
    if (runs < 1 || runs > kMostRuns) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{} runs: 1 to {} can be asked for", runs, kMostRuns));
    }
    const auto start = steady_clock::now();
    FLEETFIT_ASSIGN(const auto reply, ask("run", {{"runs", runs}, {"per_operator", per_operator}},
                                          options_.timeouts.run));
    const auto answered = steady_clock::now();
    const auto seen = view(reply, "run");
    auto times = read_run_times(seen, runs);
    if (!times) return give_up("run", times.error().message);
    if (const auto possible = check_possible(times->ms, answered - start); !possible)
      return give_up("run", seen.error(possible.error().message).value().message);
    if (!per_operator) times->operators.clear();
    return times;
  }

  Result<std::vector<NamedValue>> compute(std::span<const NamedValue> inputs) override {
    FLEETFIT_TRY(check_loaded());
    FLEETFIT_ASSIGN(const auto folder, core::ScratchFolder::create());
    FLEETFIT_ASSIGN(auto files, write_inputs(inputs, folder.path()));
    FLEETFIT_ASSIGN(
        const auto reply,
        ask("compute", {{"inputs", std::move(files)}, {"folder", folder.path().string()}},
            options_.timeouts.run));
    auto outputs = read_outputs(view(reply, "compute"), folder.path());
    if (!outputs) return give_up("compute", outputs.error().message);
    return outputs;
  }

  Status unload() override {
    if (!process_ || !loaded_) return {};
    loaded_ = false;
    FLEETFIT_TRY(ask("unload", json::object(), options_.timeouts.info));
    return {};
  }

 private:
  const std::string& program() const { return options_.command[0]; }

  /// A reply for reading; what is wrong with it is said of "PROGRAM: reply to run".
  JsonView view(const json& reply, std::string_view op) const {
    return {reply, fmt::format("{}: reply to {}", program(), op)};
  }

  Status check_loaded() const {
    if (process_ && loaded_) return {};
    return fail(ErrorCode::invalid_input, fmt::format("{}: no model is loaded", program()));
  }

  Result<RuntimeInfo> ask_info() {
    FLEETFIT_ASSIGN(const auto reply, ask("info", json::object(), options_.timeouts.info));
    auto info = read_info(view(reply, "info"));
    if (!info) return give_up("info", info.error().message);
    return info;
  }

  /// Ends the process and says why.
  tl::unexpected<Error> give_up(std::string_view op, std::string reason) {
    std::string said;
    if (process_) said = last_words(process_->error_output(), kLastWordsBytes);
    process_.reset();
    loaded_ = false;
    if (!said.empty()) said = fmt::format("; its stderr ends with: {}", said);
    return fail(ErrorCode::device_failed, fmt::format("{} (during {}){}", reason, op, said));
  }

  /// For one that does not talk any more: how it ended says more than that it is silent.
  tl::unexpected<Error> fell_silent(std::string_view op, std::string otherwise) {
    if (const auto status = process_->wait(kWaitForEnd, options_.stop)) {
      otherwise = fmt::format("{}: it ended with {}", program(), core::to_string(*status));
    }
    return give_up(op, std::move(otherwise));
  }

  /// Ends the process without waiting for anything.
  tl::unexpected<Error> cancel(Error error) {
    process_->kill();
    process_.reset();
    loaded_ = false;
    return tl::unexpected(std::move(error));
  }

  /// Sends a request and gives the fields of a reply that says "ok".
  Result<json> ask(std::string_view op, json request, milliseconds timeout) {
    const auto id = ++last_id_;
    request["id"] = id;
    request["op"] = op;
    const auto text = core::format_json_line(request) + "\n";
    if (auto sent = process_->write(text, timeout, options_.stop); !sent) {
      if (sent.error().code == ErrorCode::cancelled) return cancel(std::move(sent.error()));
      return fell_silent(op, std::move(sent.error().message));
    }
    auto line = process_->read_line(timeout, options_.stop);
    if (!line && line.error().code == ErrorCode::cancelled) return cancel(std::move(line.error()));
    if (!line) return give_up(op, line.error().message);
    if (!*line) return fell_silent(op, fmt::format("{}: it closed its output", program()));
    auto reply = core::parse_json(**line, fmt::format("{}: reply to {}", program(), op),
                                  {.max_bytes = kMostReplyBytes, .max_depth = kMostReplyDepth});
    if (!reply) return give_up(op, reply.error().message);
    return check_reply(op, id, std::move(*reply));
  }

  Result<json> check_reply(std::string_view op, std::int64_t id, json reply) {
    const auto seen = view(reply, op);
    const auto replied_to = seen.integer("id");
    if (!replied_to) return give_up(op, replied_to.error().message);
    if (*replied_to != id) {
      return give_up(
          op,
          seen.error(fmt::format("it has id {} instead of {}", *replied_to, id)).value().message);
    }
    const auto ok = seen.boolean("ok");
    if (!ok) return give_up(op, ok.error().message);
    if (*ok) return reply;
    auto error = read_error(seen);
    if (!error) return give_up(op, error.error().message);
    error->message = fmt::format("{}: {}", program(), error->message);
    if (error->code == ErrorCode::device_failed) return give_up(op, error->message);
    return tl::unexpected(std::move(*error));
  }

  ExecRuntimeOptions options_;
  std::optional<Process> process_;
  std::optional<RuntimeInfo> info_;
  bool loaded_ = false;
  std::int64_t last_id_ = 0;
};

}  // namespace

AnswerTimes answers_within(double max_time_s) {
  const AnswerTimes most;
  return {.info = answer_time(max_time_s, 0, most.info),
          .load = answer_time(kLoadFactor * max_time_s, max_time_s, most.load),
          .run = answer_time(max_time_s, max_time_s, most.run)};
}

Result<std::unique_ptr<Runtime>> start_exec_runtime(ExecRuntimeOptions options) {
  auto runtime = std::make_unique<ExecRuntime>(std::move(options));
  FLEETFIT_TRY(runtime->start());
  return runtime;
}

}  // namespace fleetfit::measure
