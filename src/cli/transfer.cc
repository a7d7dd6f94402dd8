#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/transferring.h"

namespace fleetfit::cli {
namespace {

/// The table that all verbs look at.
struct TableFlags {
  std::string file;
  std::string space;
  std::vector<std::string> devices;
};

void add_table(CLI::App& verb, TableFlags& flags) {
  verb.add_option("TABLE", flags.file, "CSV: columns of the design, then one for each device in ms")
      ->required();
  verb.add_option("--space", flags.space, "The space of the designs, e.g. nasbench201")->required();
}

void add_devices(CLI::App& verb, TableFlags& flags) {
  verb.add_option("--devices", flags.devices, "Columns to look at, A,B,…; all without it")
      ->delimiter(',')
      ->type_name("A,B,…");
}

app::TransferTable table_of(const TableFlags& flags) {
  return {.file = flags.file, .space = flags.space, .devices = flags.devices};
}

void add_threshold(CLI::App& verb, double& threshold) {
  verb.add_option("--threshold", threshold, "Rank correlation that is enough")
      ->check(CLI::Range(-1.0, 1.0));
}

std::string roofline_text(const app::RooflinePair& pair) {
  const auto& [a, b, comparison, srcc] = pair;
  return fmt::format(
      "\n{} and {}: {}\n"
      "  ridge {:.1f} and {:.1f} FLOP/byte, designs have {:.1f} to {:.1f}\n"
      "  bound by arithmetic {:.0f} % and {:.0f} %, by the same on both {:.0f} %\n"
      "  rank correlation by peaks {:.3f}{}\n",
      a.device, b.device, transfer::explain(comparison), a.peaks.ridge(), b.peaks.ridge(),
      comparison.intensity_low, comparison.intensity_high, 100 * comparison.compute_bound_a,
      100 * comparison.compute_bound_b, 100 * comparison.same_bound, comparison.srcc,
      srcc ? fmt::format(", measured {:.3f}", *srcc) : "");
}

std::string correlation_text(const app::CorrelationReport& report) {
  const auto& matrix = report.matrix;
  TextTable table;
  table.add_column("");
  for (std::size_t i = 0; i < matrix.devices.size(); ++i)
    table.add_column(std::to_string(i + 1), "{:.2f}");
  for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
    table.add(fmt::format("{:>2} {}", i + 1, matrix.devices[i]));
    for (const double srcc : matrix.srcc[i]) table.append(srcc);
  }
  std::string text = table.text() + fmt::format("{} designs", report.designs);
  if (report.empty_cells > 0)
    text += fmt::format("; {} cells are empty and left out by pairs", report.empty_cells);
  text += '\n';
  for (const auto& pair : report.rooflines) text += roofline_text(pair);
  return text;
}

void add_srcc(CLI::App& transfer, Context& context) {
  struct Flags {
    TableFlags table;
    std::vector<std::string> peaks;
    std::string heat_map;
  };
  auto [verb, flags] =
      add_verb<Flags>(transfer, "srcc", "How far devices agree on which designs are slow");
  add_table(*verb, flags->table);
  add_devices(*verb, flags->table);
  verb->add_option("--peak", flags->peaks,
                   "Peak GFLOP/s and GB/s of a device, to explain why two of them agree: "
                   "NAME=GFLOPS,GBPS or NAME=FILE.json of 'device probe --json'; at least two")
      ->type_name("NAME=PEAKS")
      ->allow_extra_args(false);
  verb->add_option("--heatmap", flags->heat_map, "A page to write, *.html")->type_name("FILE");
  verb->footer(
      "Example:\n  fleetfit transfer srcc latency.csv --space nasbench201 --heatmap map.html\n"
      "  fleetfit transfer srcc latency.csv --space fbnet --peak a=40,15 --peak b=9000,480");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    app::CorrelationRequest request{.table = table_of(flags->table), .seed = context.flags.seed};
    for (const auto& text : flags->peaks) {
      FLEETFIT_ASSIGN(auto peaks, core::within("--peak", app::peaks_from(text)));
      request.peaks.push_back(std::move(peaks));
    }
    if (!flags->heat_map.empty()) request.heat_map = flags->heat_map;
    return context.show(app::correlate_devices(request), correlation_text);
  });
}

std::string estimate_text(const app::EstimateReport& report) {
  const auto& spread = report.spread;
  return fmt::format(
      "{} samples tell {:.3f} on average, standard deviation {:.3f}; 95 % of {} trials lie from "
      "{:.3f} to {:.3f}\nall {} designs: {:.3f}\n{}{}",
      report.options.samples, spread.mean, spread.stddev, report.options.trials, spread.ci95.low,
      spread.ci95.high, report.designs, report.srcc,
      report.enough ? fmt::format("{} samples are enough to tell whether {:.2f} is reached\n",
                                  *report.enough, report.threshold)
                    : fmt::format("no number of samples tells for sure whether {:.2f} is reached\n",
                                  report.threshold),
      spread.undefined == 0 ? ""
                            : fmt::format("{} trials had no order on a device and were left out\n",
                                          spread.undefined));
}

void add_estimate(CLI::App& transfer, Context& context) {
  struct Flags {
    TableFlags table;
    std::vector<std::string> pair;
    transfer::SpreadOptions spread;
    double threshold = 0.9;
  };
  auto [verb, flags] = add_verb<Flags>(
      transfer, "estimate",
      "What few samples tell of the agreement of two devices, and how many are enough");
  add_table(*verb, flags->table);
  verb->add_option("--pair", flags->pair, "Two devices")
      ->delimiter(',')
      ->expected(2)
      ->type_name("A,B")
      ->required();
  verb->add_option("--samples", flags->spread.samples, "Designs in a sample")->required();
  verb->add_option("--trials", flags->spread.trials, "Random samples to draw")
      ->check(CLI::Range(1, 10'000'000));
  add_threshold(*verb, flags->threshold);
  verb->footer(
      "Example:\n  fleetfit transfer estimate latency.csv --space nasbench201 --pair "
      "pixel3,raspi4 --samples 30");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    flags->spread.seed = context.flags.seed;
    return context.show(app::estimate_correlation({.table = flags->table.file,
                                                   .space = flags->table.space,
                                                   .a = flags->pair[0],
                                                   .b = flags->pair[1],
                                                   .spread = flags->spread,
                                                   .threshold = flags->threshold,
                                                   .threads = context.threads()}),
                        estimate_text);
  });
}

std::string select_text(const app::SelectReport& report) {
  TextTable table("device | mean agreement {:.3f}");
  for (const auto& proxy : report.ranking) table.add(proxy.device, proxy.mean_srcc);
  std::string text = table.text() + fmt::format("from {} designs\n", report.designs) +
                     fmt::format("\nA pool in which each device reaches {:.2f} with its proxy:\n",
                                 report.threshold);
  for (const auto& member : report.pool)
    text += fmt::format("  {}: {}\n", member.proxy, fmt::join(member.devices, ", "));
  return text;
}

void add_select(CLI::App& transfer, Context& context) {
  struct Flags {
    TableFlags table;
    std::optional<std::size_t> samples;
    double threshold = 0.9;
  };
  auto [verb, flags] =
      add_verb<Flags>(transfer, "select", "Which device, or which few, to take as the proxy");
  add_table(*verb, flags->table);
  add_devices(*verb, flags->table);
  verb->add_option("--samples", flags->samples, "Look at so many random designs; all without it")
      ->check(CLI::Range(2, 100'000'000));
  add_threshold(*verb, flags->threshold);
  verb->footer("Example:\n  fleetfit transfer select latency.csv --space nasbench201 --samples 40");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    return context.show(app::select_proxy({.table = table_of(flags->table),
                                           .samples = flags->samples,
                                           .threshold = flags->threshold,
                                           .seed = context.flags.seed}),
                        select_text);
  });
}

std::string changes_text(const std::vector<transfer::OperatorChange>& changes) {
  constexpr std::size_t kShown = 10;
  TextTable table("beside the common factor | most, ms each {:+.4g}");
  for (std::size_t i = 0; i < std::min(kShown, changes.size()); ++i) {
    table.add(changes[i].name + (changes[i].live_only ? ", with a way to the output" : ""),
              changes[i].change_ms);
  }
  std::string text = table.text();
  if (changes.size() > kShown) text += fmt::format("and {} more\n", changes.size() - kShown);
  return text;
}

std::string adapt_text(const app::AdaptProxyReport& report) {
  const auto& first = report.trials.front().report;
  const auto kept = std::ranges::count_if(
      report.trials, [](const auto& trial) { return trial.report.keeps_proxy; });
  std::string text = fmt::format(
      "rank correlation with '{}' before {:.3f}, after {:.3f}{}; common factor {:.4g}\n",
      first.target, report.srcc_before, report.srcc_after,
      report.trials.size() > 1 ? fmt::format(" (mean of {} trials)", report.trials.size()) : "",
      report.alpha);
  if (kept > 0) {
    text += fmt::format("The proxy was kept as it is{}: the measurements speak for no change.\n",
                        report.trials.size() > 1 ? fmt::format(" in {} trials", kept) : "");
  }
  if (!first.changes.empty()) text += "\n" + changes_text(first.changes);
  return text;
}

void add_adapt_proxy(CLI::App& transfer, Context& context) {
  struct Flags {
    TableFlags table;
    app::AdaptProxyRequest request;
    std::string output;
  };
  auto [verb, flags] = add_verb<Flags>(
      transfer, "adapt",
      "Bend a proxy's latencies towards another device by a few measurements there");
  auto& request = flags->request;
  add_table(*verb, flags->table);
  verb->add_option("--proxy", request.proxy, "The known device, a column")->required();
  verb->add_option("--target", request.target, "The new device, a column")->required();
  verb->add_option("--samples", request.samples, "Designs measured on the target")->required();
  verb->add_option("--validation", request.validation,
                   "Designs measured beside them, to choose how much may change");
  verb->add_option("--trials", request.trials, "Random samples to try; results are means")
      ->check(CLI::Range(1, 1'000'000));
  verb->add_option("-o,--output", flags->output, "The adapted proxy's file to write")
      ->type_name("FILE");
  verb->footer(
      "The file is a source of latency for searches: adapted:FILE.\n\nExample:\n  fleetfit "
      "transfer "
      "adapt latency.csv --space nasbench201 --proxy pixel3 --target gold_6226 --samples 60 -o "
      "gold.json");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    auto adapting = flags->request;
    adapting.table = flags->table.file;
    adapting.space = flags->table.space;
    if (!flags->output.empty()) adapting.output = flags->output;
    adapting.seed = context.flags.seed;
    adapting.threads = context.threads();
    return context.show(app::adapt_proxy(adapting), adapt_text);
  });
}

std::string step_text(const transfer::OneProxyStep& step) {
  std::string text =
      fmt::format("{} samples: the proxy reaches {:.3f} ({:.3f} to {:.3f})", step.samples,
                  step.proxy.srcc, step.proxy.ci95.low, step.proxy.ci95.high);
  if (step.adapted) {
    text += fmt::format(", adapted {:.3f} ({:.3f} to {:.3f})", step.adapted->srcc,
                        step.adapted->ci95.low, step.adapted->ci95.high);
  }
  return text + "\n";
}

std::string one_proxy_text(const app::OneProxyReport& report) {
  const auto& result = report.result;
  std::string text;
  for (const auto& step : result.steps) text += step_text(step);
  text +=
      fmt::format("The proxy is {}; {:.2f} {}.\n\n", result.adapted ? "adapted" : "used as it is",
                  report.threshold, result.reaches_threshold ? "is reached" : "is not reached");
  TextTable table("design | ms {:.4g} | accuracy {:.4g}");
  for (const auto& design : result.pareto) {
    table.add(report.space->format(design.design), design.latency_ms, design.accuracy);
  }
  return text + table.text() +
         fmt::format("{} measurements in all; {} designs were dropped as others are better\n",
                     result.measurements, result.dropped);
}

void add_transfer_run(CLI::App& transfer, Context& context) {
  struct Flags {
    TableFlags table;
    app::OneProxyRequest request;
    double max_time_s = 10;
  };
  auto [verb, flags] = add_verb<Flags>(
      transfer, "run",
      "The best designs for a new device: sample, check or adapt the proxy, search, measure");
  auto& request = flags->request;
  add_table(*verb, flags->table);
  verb->add_option("--proxy", request.proxy, "The known device, a column")->required();
  verb->add_option("--target", request.target,
                   "The new device: a column, or a source such as device:NAME")
      ->required();
  verb->add_option("--accuracy", request.accuracy, "Quality of designs")
      ->type_name("SOURCE")
      ->required();
  verb->add_option("--samples", request.options.samples, "Designs measured first");
  verb->add_option("--step", request.options.step, "Designs measured more while that is not enough")
      ->check(CLI::Range(1, 1'000'000));
  verb->add_option("--max-samples", request.most_samples, "Most designs measured as samples");
  verb->add_option("--validation", request.options.validation,
                   "Samples that are set aside at a time while adapting")
      ->check(CLI::Range(2, 1'000'000));
  verb->add_option("--max-time", flags->max_time_s, "Most seconds for each design on a device")
      ->check(CLI::Range(0.01, 86400.0));
  add_threshold(*verb, request.options.threshold);
  verb->footer(
      "A SOURCE is table:FILE.csv#COLUMN, predictor:FILE, adapted:FILE, device:NAME or\n"
      "fitted:FILE.csv#COLUMN. The exit status is 1 if the threshold is not reached.\n\nExample:\n "
      " fleetfit transfer run "
      "latency.csv --space nasbench201 --proxy pixel3 --target gold_6226 --accuracy "
      "table:accuracy.csv#c10_test_200ep");
  context.on(verb, [flags, &context](const std::stop_token& stop) -> Result<Verdict> {
    auto running = flags->request;
    running.table = flags->table.file;
    running.space = flags->table.space;
    running.sources = {.protocol = measure::protocol_within(flags->max_time_s),
                       .seed = context.flags.seed,
                       .threads = context.threads()};
    FLEETFIT_ASSIGN(auto workplace, app::measures(running) ? context.open_workplace()
                                                           : context.open_existing_workplace());
    FLEETFIT_ASSIGN(const auto report,
                    app::run_one_proxy(workplace, running, context.progress(), stop));
    context.show(report, one_proxy_text);
    return done_if(
        report.result.reaches_threshold,
        fmt::format("the rank correlation stays below the threshold of {}", report.threshold));
  });
}

}  // namespace

void add_transfer(CLI::App& program, Context& context) {
  auto* transfer =
      program.add_subcommand("transfer", "From devices that are known to one that is not");
  transfer->require_subcommand(1);
  add_srcc(*transfer, context);
  add_estimate(*transfer, context);
  add_select(*transfer, context);
  add_adapt_proxy(*transfer, context);
  add_transfer_run(*transfer, context);
  add_transfer_fewshot(*transfer, context);
}

}  // namespace fleetfit::cli
