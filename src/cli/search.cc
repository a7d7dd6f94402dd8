#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/searching.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"

namespace fleetfit::cli {
namespace {

using search::Candidate;

constexpr std::size_t kShownPoints = 20;

/// What both verbs take.
struct CommonFlags {
  std::string space;
  std::string accuracy;
  search::EvolutionOptions evolution;
  std::string fit = "auto";
  double max_time_s = 10;
  std::string output;
  std::string plot;
};

struct SearchFlags {
  CommonFlags common;
  app::SearchRequest request;
};

struct BisectFlags {
  CommonFlags common;
  app::BisectRequest request;
};

void add_common(CLI::App& verb, CommonFlags& flags) {
  verb.add_option("--space", flags.space, "The space of designs")->type_name("SPACE");
  verb.add_option("--accuracy", flags.accuracy, "Where the accuracy of a design comes from")
      ->type_name("SOURCE");
  verb.add_option("--population", flags.evolution.population, "Designs in a population")
      ->check(CLI::Range(2, 10'000'000));
  verb.add_option("--generations", flags.evolution.generations, "Populations in all")
      ->check(CLI::Range(1, 10'000'000));
  verb.add_option("--parent-ratio", flags.evolution.parent_ratio,
                  "Share of the population that survives")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--mutation-prob", flags.evolution.mutation_probability,
                  "Probability with which a gene of a mutating child changes")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--mutation-ratio", flags.evolution.mutation_ratio,
                  "Mutating children, as a share of the population")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--fit", flags.fit,
                  "How fitted: sources learn: auto (linear or trees) or mlp (four dense layers)");
  verb.add_option("--max-time", flags.max_time_s,
                  "Most seconds for each design that is measured by a device: source")
      ->check(CLI::Range(0.01, 86400.0));
  verb.add_option("-o,--output", flags.output, "Also write the result to this JSON file");
  verb.add_option("--plot", flags.plot, "Write a page of HTML with a chart");
}

Status need(const std::string& value, std::string_view flag) {
  if (!value.empty()) return {};
  return fail(ErrorCode::invalid_input, fmt::format("{} is required", flag));
}

Result<app::SourceOptions> source_options(const Context& context, const CommonFlags& flags) {
  FLEETFIT_TRY(need(flags.space, "--space"));
  FLEETFIT_TRY(need(flags.accuracy, "--accuracy"));
  const auto fit = app::fit_method_from(flags.fit);
  if (!fit) return core::within("--fit", fit.error());
  return app::SourceOptions{.protocol = measure::protocol_within(flags.max_time_s),
                            .fit = *fit,
                            .seed = context.flags.seed,
                            .threads = context.threads()};
}

/// Only what measures needs a store of its own.
Result<app::Workplace> workplace_for(const Context& context, bool measures) {
  return measures ? context.open_workplace() : context.open_existing_workplace();
}

/// Designs with their costs, behind some columns of the caller.
TextTable table_of(const std::vector<std::string>& costs, const std::string& before = {}) {
  TextTable table(before + "design");
  for (const auto& cost : costs) table.add_column(cost, "{:.4g}");
  table.add_column("accuracy", "{:.4g}");
  return table;
}

template <class... Before>
void add_row(TextTable& table, const space::Space& space, const Candidate& candidate,
             const Before&... before) {
  table.add(before..., space.format(candidate.design));
  for (const double cost : candidate.costs) table.append(cost);
  table.append(candidate.accuracy);
}

std::string sources_text(const std::vector<app::SourceReport>& sources) {
  std::string text;
  for (const auto& source : sources) {
    text += fmt::format("{}: {}, {}", source.quantity,
                        source.is_measured ? "measured" : "predicted", source.about);
    if (source.rank_correlation)
      text +=
          fmt::format(", rank correlation with unseen designs {:.3f}", *source.rank_correlation);
    text += "\n";
  }
  return text;
}

/// All of a short set, else points evenly spread over it.
std::string pareto_text(const app::SearchReport& report) {
  const auto& pareto = report.found.pareto;
  if (pareto.empty()) return "";
  auto table = table_of(report.costs);
  const std::size_t shown = std::min(kShownPoints, pareto.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t place = shown == 1 ? 0 : i * (pareto.size() - 1) / (shown - 1);
    add_row(table, *report.space, pareto[place]);
  }
  return fmt::format("Pareto set, {} of {} designs\n{}\n", shown, pareto.size(), table.text());
}

std::string best_text(const space::Space& space, const std::vector<std::string>& costs,
                      const std::optional<Candidate>& best,
                      const std::optional<Candidate>& nearest) {
  auto table = table_of(costs, " | ");
  if (best) add_row(table, space, *best, "best");
  if (!best && nearest) add_row(table, space, *nearest, "nearest");
  if (!best && !nearest) return "no design could be measured\n\n";
  return (best ? "" : "no design keeps the budgets\n") + table.text() + "\n";
}

std::string search_text(const app::SearchReport& report) {
  const auto& found = report.found;
  std::string text = best_text(*report.space, report.costs, found.best, found.nearest) +
                     pareto_text(report) + sources_text(report.sources);
  text += fmt::format("{}: {} designs in {:.3g} s", report.strategy, found.evaluations,
                      report.elapsed_s);
  if (found.unknown > 0) text += fmt::format(", {} of them without numbers", found.unknown);
  if (report.hypervolume) text += fmt::format("; hypervolume {:.5g}", report.hypervolume->value);
  if (found.stopped) text += "; stopped before the end";
  return text + "\n";
}

/// What both verbs take alike.
template <class Request>
Status take_common(const Context& context, const CommonFlags& flags, Request& request) {
  FLEETFIT_ASSIGN(auto sources, source_options(context, flags));
  request.space = flags.space;
  request.accuracy = flags.accuracy;
  request.evolution = flags.evolution;
  request.sources = std::move(sources);
  request.plot = flags.plot;
  return {};
}

constexpr const char* kNoDesign = "no design keeps the budgets";

/// Writes the report where that is asked for, and shows it.
template <class Report>
Result<Verdict> hand_over(const Context& context, const CommonFlags& flags, const Report& report,
                          std::string (*text)(const Report&)) {
  if (!flags.output.empty())
    FLEETFIT_TRY(core::write_file(flags.output, core::format_json(to_json(report))));
  return context.show(report, text);
}

Result<Verdict> run_search(Context& context, SearchFlags& flags, const std::stop_token& stop) {
  auto& request = flags.request;
  FLEETFIT_TRY(take_common(context, flags.common, request));
  FLEETFIT_TRY(need(request.latency.source, "--latency"));
  FLEETFIT_ASSIGN(auto workplace, workplace_for(context, app::measures(request)));
  FLEETFIT_ASSIGN(const auto report,
                  app::search_designs(workplace, request, context.progress(), stop));
  FLEETFIT_TRY(hand_over(context, flags.common, report, search_text));
  return done_if(report.found.best.has_value(), kNoDesign);
}

std::string bisect_text(const app::BisectReport& report) {
  auto steps = table_of(report.costs, "step {} | found by | t {} | ");
  for (std::size_t i = 0; i < report.result.steps.size(); ++i) {
    const auto& step = report.result.steps[i];
    const bool bisected = step.phase == search::BisectPhase::bisection;
    add_row(steps, *report.space, step.measured, i + 1, bisected ? "bisection" : "neighbour",
            fmt::format("{:.4g}", fmt::join(step.weights, ", ")));
  }
  std::string baselines;
  for (const auto& [name, best, measurements, remark] : report.baselines) {
    baselines += fmt::format(
        "{}, {} measurements: {}\n", name, measurements,
        best ? fmt::format("{}, {:.4g} ms, accuracy {:.4g}", report.space->format(best->design),
                           best->costs[0], best->accuracy)
             : remark);
  }
  const auto& fleet = report.fleet;
  return best_text(*report.space, report.costs, report.result.best, report.result.nearest) +
         steps.text() + "\n" + baselines + sources_text(report.sources) +
         fmt::format(
             "{} measurements, {:.4g} s of the device ({}). A fleet of {}: {:.3g} h by this proxy, "
             "{:.3g} h with a predictor of {} designs for each.\n",
             report.result.measurements, report.machine_s,
             report.machine_s_is_measured ? "measured" : "at 20 s each", report.devices,
             fleet.proxy_s / 3600, fleet.predictors_s / 3600, report.predictor_measurements);
}

Result<Verdict> run_bisect(Context& context, BisectFlags& flags, const std::stop_token& stop) {
  auto& request = flags.request;
  FLEETFIT_TRY(take_common(context, flags.common, request));
  for (const auto& [value, flag] :
       {std::pair{&request.proxy.source, "--proxy"}, std::pair{&request.target.source, "--target"}})
    FLEETFIT_TRY(need(*value, flag));
  if (!request.target.budget) return fail(ErrorCode::invalid_input, "--budget-ms is required");
  FLEETFIT_ASSIGN(auto workplace, workplace_for(context, app::measures(request)));
  FLEETFIT_ASSIGN(const auto report,
                  app::bisect_on_device(workplace, request, context.progress(), stop));
  FLEETFIT_TRY(hand_over(context, flags.common, report, bisect_text));
  return done_if(report.result.best.has_value(), kNoDesign);
}

void add_bisect(CLI::App& search, Context& context) {
  auto [verb, flags] = add_verb<BisectFlags>(
      search, "bisect",
      "The best design for a device by a few measurements on it, by way of a proxy");
  auto& request = flags->request;
  add_common(*verb, flags->common);
  verb->add_option("--proxy", request.proxy.source, "Latency on the proxy device")
      ->type_name("SOURCE");
  verb->add_option("--target", request.target.source, "Latency on the device: what is saved")
      ->type_name("SOURCE");
  verb->add_option("--budget-ms", request.target.budget, "Most milliseconds on the device");
  verb->add_option("--proxy-energy", request.proxy_energy.source, "Energy on the proxy device")
      ->type_name("SOURCE");
  verb->add_option("--target-energy", request.target_energy.source, "Energy on the device")
      ->type_name("SOURCE");
  verb->add_option("--budget-mj", request.target_energy.budget, "Most millijoules on the device");
  verb->add_option("--max-measurements", request.max_measurements,
                   "Most designs to measure on the device")
      ->check(CLI::Range(1, 100'000));
  verb->add_flag("--compare-scaling", request.compare_scaling,
                 "Also measure what scaling the depth of one good design gives");
  verb->add_option("--compare-predictor", request.compare_predictor,
                   "Also search with a predictor of the device's own")
      ->type_name("SOURCE");
  verb->add_option("--devices", request.devices, "Devices of the fleet, for the account of costs")
      ->check(CLI::Range(1, 1'000'000'000));
  verb->add_option("--predictor-measurements", request.predictor_measurements,
                   "Designs that a predictor would be built from, for the account of costs")
      ->check(CLI::Range(1, 1'000'000'000));
  verb->footer(
      "The exit status is 1 if no measured design keeps the budget; the nearest is printed.\n\n"
      "Example:\n"
      "  fleetfit search bisect --space nasbench201 --proxy table:latency.csv#pixel3 \\\n"
      "    --target device:board --accuracy table:accuracy.csv#c10_test_200ep --budget-ms 40");
  context.on(verb, flags, run_bisect);
}

void add_costs(CLI::App& verb, app::SearchRequest& request) {
  verb.add_option("--latency", request.latency.source, "Where the latency of a design comes from")
      ->type_name("SOURCE");
  verb.add_option("--energy", request.energy.source, "The same for its energy")
      ->type_name("SOURCE");
  verb.add_option("--memory", request.memory.source, "The same for its memory")
      ->type_name("SOURCE");
  verb.add_option("--budget-ms", request.latency.budget, "Most milliseconds");
  verb.add_option("--budget-mj", request.energy.budget, "Most millijoules");
  verb.add_option("--budget-mb", request.memory.budget, "Most megabytes (10^6 bytes)");
  verb.add_option("--weight", request.latency.weight,
                  "t: minimize -(1 - t) accuracy + t latency, each in units of its spread")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--energy-weight", request.energy.weight, "The same for energy, added to it")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--memory-weight", request.memory.weight, "The same for memory, added to it")
      ->check(CLI::Range(0.0, 1.0));
}

}  // namespace

void add_search(CLI::App& program, Context& context) {
  auto [verb, flags] =
      add_verb<SearchFlags>(program, "search", "Find the best designs of a space for a device");
  add_common(*verb, flags->common);
  add_costs(*verb, flags->request);
  verb->add_flag("--pareto", flags->request.pareto,
                 "All designs that nothing beats in accuracy and costs");
  verb->add_option("--strategy", flags->request.strategy,
                   "evolution, nsga2, annealing, random or exhaustive; by default evolution, for "
                   "--pareto nsga2, for tables of few designs exhaustive");
  verb->require_subcommand(0, 1);
  verb->footer(
      "A SOURCE is table:FILE.csv#COLUMN, predictor:FILE, adapted:FILE, device:NAME (measures) or\n"
      "fitted:FILE.csv#COLUMN (learns from the designs of a small table). The exit status is 1 if\n"
      "no design keeps the budgets; the nearest is printed.\n\n"
      "Example:\n"
      "  fleetfit search --space nasbench201 --latency table:latency.csv#pixel3 \\\n"
      "    --accuracy table:accuracy.csv#c10_test_200ep --budget-ms 20\n"
      "  fleetfit search --space ofa-mbv3 --latency predictor:phone.json \\\n"
      "    --accuracy fitted:measured.csv#top1 --pareto --plot pareto.html");
  context.on(verb, flags, run_search);
  add_bisect(*verb, context);
}

}  // namespace fleetfit::cli
