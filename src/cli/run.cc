#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/serving.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/sleep.h"
#include "fleetfit/server/serving_http.h"

namespace fleetfit::cli {
namespace {

struct RunFlags {
  app::ServeRequest request;
  std::string public_key;
  std::string listen;
  bool stdin_lines = false;
  double seconds = 0;  // 0: not said
  double rate = 0;
};

/// Stops when the user asks for it or the time is over.
class Ending {
 public:
  Ending(std::stop_token interrupt, double seconds)
      : interrupt_(std::move(interrupt), [this] { stop_.request_stop(); }) {
    if (seconds <= 0) return;
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::duration<double>(std::min(seconds, kLongest)));
    alarm_ = std::jthread([this, time](const std::stop_token& end) {
      core::sleep_unless_stopped(time, end);
      stop_.request_stop();
    });
  }

  std::stop_token token() const { return stop_.get_token(); }

 private:
  static constexpr double kLongest = 1e9;

  std::stop_source stop_;
  std::stop_callback<std::function<void()>> interrupt_;
  std::jthread alarm_;
};

std::string summary_text(const app::ServeSummary& summary) {
  const auto& report = summary.report;
  if (report.requests == 0) return "No request was served.\n";
  TextTable table(
      "subnet | requests {} | mean ms {:.4g} | expected ms {:.4g} | expected accuracy {:.2f} %");
  for (const auto& use : report.subnets) {
    table.add(use.subnet, use.requests, use.mean_ms, use.estimated_ms, 100 * use.accuracy);
  }
  const auto percent = [](std::size_t part, std::size_t whole) {
    return 100 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::string text =
      table.text() + fmt::format(
                         "{} requests, {:.1f} % of them within {:.4g} ms; median {:.4g} ms, 95 % "
                         "within {:.4g} ms\n{} switches, the longest in {:.0f} us; {} of memory "
                         "for a bundle of {}\n",
                         report.requests, percent(report.within_budget, report.requests),
                         summary.budget_ms, report.median_ms, report.p95_ms, report.switches,
                         report.longest_switch_us, with_prefix(summary.peak_memory_bytes, "B"),
                         with_prefix(summary.bundle_bytes, "B"));
  if (report.load.settled > 0)
    text += fmt::format(
        "{} changes of load; a second after them, {:.1f} % of requests within the budget\n",
        report.load.changes, percent(report.load.settled_within_budget, report.load.settled));
  if (report.labelled > 0)
    text += fmt::format("accuracy: {:.2f} %\n", percent(report.right, report.labelled));
  if (!report.budget_met) text += "The budget was not kept in the end.\n";
  return text;
}

Status write_line(std::string_view line) {
  const bool written = std::fwrite(line.data(), 1, line.size(), stdout) == line.size() &&
                       std::fputc('\n', stdout) != EOF && std::fflush(stdout) == 0;
  if (written) return {};
  return fail(ErrorCode::io, "an answer could not be written");
}

Status serve(Context& context, const RunFlags& flags, app::Serving& serving,
             const std::stop_token& interrupt) {
  if (!flags.stdin_lines && flags.listen.empty()) {
    constexpr double kSeconds = 10;
    return serving.serve_data(
        {.seconds = flags.seconds > 0 ? flags.seconds : kSeconds, .rate = flags.rate},
        context.progress(), interrupt);
  }
  const Ending ending(interrupt, flags.seconds);
  if (flags.stdin_lines) return app::serve_lines(serving, STDIN_FILENO, write_line, ending.token());
  FLEETFIT_ASSIGN(const auto address, server::parse_loopback(flags.listen));
  return server::serve_http(
      serving, address,
      [&](const std::string& bound) {
        serving.announce(bound);
        core::ProgressTask(context.progress(), {.name = "serve"})
            .message("listening on http://" + bound);
      },
      ending.token());
}

Status check_flags(const RunFlags& flags) {
  const auto refuse = [](const char* message) { return fail(ErrorCode::invalid_input, message); };
  if (flags.stdin_lines && !flags.listen.empty())
    return refuse("--stdin and --listen cannot both be given");
  const bool from_data = !flags.stdin_lines && flags.listen.empty();
  if (from_data && flags.request.data.empty())
    return refuse("nothing says where requests come from: --data, --stdin or --listen");
  if (!from_data && flags.rate > 0) return refuse("--rate is for requests of --data");
  if (!flags.listen.empty()) return server::parse_loopback(flags.listen).map([](const auto&) {});
  return {};
}

/// Where answers go to the standard output, the summary is the last line there, or goes elsewhere.
void print_summary(Context& context, const RunFlags& flags, const app::ServeSummary& summary) {
  using core::to_json;
  const bool lines = flags.stdin_lines;
  if (context.flags.json && lines) {
    context.print(core::format_json_line({{"summary", to_json(summary)}}) + "\n");
  } else if (context.flags.json) {
    context.print(to_json(summary));
  } else if (!lines) {
    context.print(summary_text(summary));
  } else if (!context.flags.quiet) {
    fmt::print(stderr, "{}", summary_text(summary));
  }
}

Result<Verdict> run_run(Context& context, RunFlags& flags, const std::stop_token& stop) {
  FLEETFIT_TRY(check_flags(flags));
  auto& request = flags.request;
  if (!flags.public_key.empty()) request.public_key = flags.public_key;
  request.seed = context.flags.seed;
  FLEETFIT_ASSIGN(auto workplace, request.search_again ? context.open_workplace()
                                                       : context.open_existing_workplace());
  FLEETFIT_ASSIGN(const auto serving, app::open_serving(workplace, request));
  FLEETFIT_TRY(serve(context, flags, *serving, stop));
  const auto summary = serving->summary();
  print_summary(context, flags, summary);
  return done_if(summary.report.budget_met, "the budget was not kept");
}

void add_sources(CLI::App& verb, RunFlags& flags) {
  verb.add_option("--data", flags.request.data, "Requests: images of a data set's test part")
      ->type_name("DATASET");
  verb.add_flag("--stdin", flags.stdin_lines,
                "Requests: lines of JSON on the standard input, answers on the standard output");
  verb.add_option("--listen", flags.listen,
                  "Requests over HTTP, from this machine alone: POST /v1/predict, GET /v1/status")
      ->type_name("127.0.0.1:PORT");
  verb.add_option("--seconds", flags.seconds, "How long; with --data 10 if it is not said")
      ->check(CLI::PositiveNumber);
  verb.add_option("--rate", flags.rate,
                  "Requests of --data a second; not said: as many as possible")
      ->check(CLI::PositiveNumber);
}

}  // namespace

void add_serving_run(CLI::App& program, Context& context) {
  auto [verb, flags] = add_verb<RunFlags>(
      program, "run",
      "Serve requests with the subnet that fits the moment, and switch when it changes");
  auto& request = flags->request;
  verb->add_option("BUNDLE", request.bundle, "An elastic model (.ffb)")->required();
  verb->add_option("--pool", request.pool, "Its subnets for this device, by 'fleetfit adapt'")
      ->required();
  verb->add_option("--budget-ms", request.budget_ms, "Most milliseconds that a request may take")
      ->required()
      ->check(CLI::PositiveNumber);
  verb->add_option("--tail", request.tail,
                   "Which latency has to keep the budget: median, p95, p99");
  add_sources(*verb, *flags);
  verb->add_option("--events", request.events, "A line of JSON for every switch goes there")
      ->type_name("FILE.jsonl");
  verb->add_option("--device", request.device, "Threads and kernels are those of this device");
  verb->add_option("--memory", request.memory, "Most memory for subnets that are held ready");
  verb->add_option("--public-key", flags->public_key,
                   "Refuse a bundle that is not signed by this key")
      ->type_name("PUBLIC.pem");
  verb->add_flag("--search-again", request.search_again,
                 "Search new subnets in the background (with --data) when none fits for a while");
  verb->add_option("--table", request.table,
                   "Latency table for that search, by 'adapt --save-table'");
  verb->footer(
      "The exit status is 1 if the budget was not kept in the end.\n\nExample:\n"
      "  fleetfit run net.ffb --pool pool.json --budget-ms 5 --data fashion-mnist --seconds 60\n"
      "  fleetfit run net.ffb --pool pool.json --budget-ms 5 --listen 127.0.0.1:8080");
  context.on(verb, flags, run_run);
}

}  // namespace fleetfit::cli
