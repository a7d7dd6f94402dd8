#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/adapting.h"

namespace fleetfit::cli {
namespace {

struct AdaptFlags {
  app::AdaptRequest request;
  std::string public_key;
};

std::string pool_text(const app::AdaptReport& report) {
  TextTable table("subnet | ms {:.4g} | relative {:.2f} | accuracy {:.2f} % | ");
  for (const auto& entry : report.pool)
    table.add(entry.subnet, entry.latency_ms, entry.relative, 100 * entry.accuracy,
              report.best && entry.subnet == report.best->subnet ? "best" : "");
  return table.text();
}

std::string report_text(const app::AdaptReport& report) {
  if (!report.best)
    return fmt::format(
        "No subnet keeps {:.4g} ms on {}. The fastest, {}, takes {:.4g} ms: a budget from there on "
        "is possible.\n",
        report.budget_ms, report.device, report.fastest.subnet, report.fastest.latency_ms);
  const auto compared = report.compared
                            ? fmt::format("\ncompared: {} takes {:.4g} ms and has {:.2f} %\n",
                                          report.compared->subnet, report.compared->latency_ms,
                                          100 * report.compared->accuracy)
                            : "";
  return fmt::format(
      "{}{}\nlatencies: measured on {}, whole subnets; sums of the table's branches are off by "
      "{:.1f} "
      "% on average\naccuracies: on {} test images that nothing was chosen by\n{}: {} subnets on "
      "{} "
      "images in {:.3g} s; sharing saved {:.0f} % of the time, with {}\n{:.3g} s in all, {} of "
      "memory\n",
      pool_text(report), compared, report.device, report.table_error_percent, report.test_images,
      report.strategy, report.evaluated, report.searched_images, report.elapsed_s,
      100 * report.reuse.saved_fraction, with_prefix(report.reuse.peak_bytes, "B"), report.total_s,
      with_prefix(report.peak_memory_bytes, "B"));
}

Result<Verdict> run_adapt(Context& context, AdaptFlags& flags, const std::stop_token& stop) {
  auto& request = flags.request;
  if (!flags.public_key.empty()) request.public_key = flags.public_key;
  request.seed = context.flags.seed;
  request.threads = context.threads();
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  FLEETFIT_ASSIGN(const auto report,
                  app::adapt_bundle(workplace, request, context.progress(), stop));
  context.show(report, report_text);
  if (report.stopped) return Verdict::failed("the search was stopped before its end");
  return done_if(report.best.has_value(), "no subnet keeps the budget");
}

void add_search_flags(CLI::App& verb, AdaptFlags& flags) {
  auto& request = flags.request;
  verb.add_option("--strategy", request.strategy,
                  "guided, evolution, annealing, nearby-evolution or nearby-annealing");
  verb.add_option("--samples", request.samples, "Images of the validation part to search with");
  verb.add_option("--choice-images", request.choice,
                  "Most further images to choose the best of the finalists by");
  verb.add_option("--test-images", request.test,
                  "Most images of the test part to take accuracies on");
  verb.add_option("--labels", request.labels,
                  "What is right: data, or original (what the original network says)");
  verb.add_option("--reuse-memory", request.reuse_memory,
                  "Most memory for features that subnets share; 0: none");
  verb.add_option(
      "--program-memory", request.program_memory,
      "About the most memory for what is ready to run: branches, and subnets that are timed");
}

}  // namespace

void add_adapt(CLI::App& program, Context& context) {
  auto [verb, flags] = add_verb<AdaptFlags>(
      program, "adapt",
      "Find the best subnet of an elastic model for a device, its data and a budget");
  auto& request = flags->request;
  verb->add_option("BUNDLE", request.bundle, "The elastic model (.ffb)")->required();
  verb->add_option("--data", request.data,
                   "The device's data: fashion-mnist, idx:DIR, cifar10:DIR, images:DIR, or "
                   "shifted:ALPHA@SEED: and one of these")
      ->required()
      ->type_name("DATASET");
  verb->add_option("--budget-ms", request.budget_ms, "Most milliseconds for an image")->required();
  verb->add_option("--tail", request.tail, "What the budget is for: median, p95 or p99");
  verb->add_option("--device", request.device, "The device to run on")->type_name("NAME");
  add_search_flags(*verb, *flags);
  auto* table = verb->add_option("--table", request.table,
                                 "A latency table of this device instead of profiling it");
  table->type_name("FILE");
  verb->add_option("--proxy", request.proxy,
                   "The latency table of another device, to be bent to this one by a few subnets")
      ->type_name("FILE")
      ->excludes(table);
  verb->add_option("--save-table", request.save_table, "Write the latency table to this file")
      ->type_name("FILE");
  verb->add_option("--compare", request.compare,
                   "Tell latency and accuracy of this subnet, too, on the same images")
      ->type_name("CODE");
  verb->add_option("--public-key", flags->public_key,
                   "Refuse a bundle that was not signed by this key (PEM)")
      ->type_name("FILE");
  verb->add_option("-o,--output", request.pool, "The pool of subnets to write (JSON)")->required();
  verb->footer(
      "The exit status is 1 if no subnet keeps the budget; the fastest is then printed, and no "
      "pool is written.\n\n"
      "Example:\n  fleetfit adapt model.ffb --data fashion-mnist --budget-ms 0.8 -o pool.json");
  context.on(verb, flags, run_adapt);
}

}  // namespace fleetfit::cli
