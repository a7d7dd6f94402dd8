#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "fleetfit/app/few_shot.h"

namespace fleetfit::cli {
namespace {

struct Flags {
  app::FewShotRequest request;
  std::string output;
};

std::string comparison_text(const app::FewShotReport& report) {
  if (report.trials.empty()) return "";
  const auto mean = report.mean();
  return fmt::format(
      "rank correlation {:.3f} with the measured column{}; mean error {:.1f} %; the 90 % intervals "
      "hold {:.0f} %\n",
      mean.srcc,
      report.trials.size() > 1 ? fmt::format(" (mean of {} trials)", report.trials.size()) : "",
      mean.mape, 100 * mean.coverage90);
}

std::string verdict_text(const app::FewShotReport& report) {
  if (!report.verdict) return "too few measurements to predict anything\n";
  return fmt::format(
      "expected rank correlation {:.3f}; measurements differ by {:.3g} ms, so that no predictor "
      "reaches more than {:.3f}\n{}",
      report.verdict->expected_srcc, report.verdict->noise_ms, report.verdict->ceiling,
      report.verdict->enough ? "this is enough\n" : "");
}

std::string report_text(const app::FewShotReport& report) {
  std::string text = fmt::format("{} from {} references and {} measurements\n", report.target,
                                 report.references.size(), report.measurements);
  text += comparison_text(report) + verdict_text(report);
  if (!report.samples_chosen.empty())
    text += fmt::format("measured: {}\n", fmt::join(report.samples_chosen, " "));
  if (!report.measure_next.empty())
    text += fmt::format("measure these next: {}\n", fmt::join(report.measure_next, " "));
  return text;
}

Result<Verdict> run(const Context& context, Flags flags) {
  flags.request.seed = context.flags.seed;
  flags.request.threads = context.threads();
  FLEETFIT_ASSIGN(const auto report, app::transfer_few_shot(flags.request));
  if (!flags.output.empty()) {
    FLEETFIT_TRY(app::write_few_shot(report, flags.output));
  }
  return context.show(report, report_text);
}

}  // namespace

void add_transfer_fewshot(CLI::App& transfer, Context& context) {
  auto [verb, flags] =
      add_verb<Flags>(transfer, "fewshot",
                      "Predict a new device from many known ones and a few chosen measurements");
  auto& request = flags->request;
  verb->add_option("TABLE", request.table, "Latencies by design and device, CSV")->required();
  verb->add_option("--space", request.space, "The space of the designs")->required();
  verb->add_option("--references", request.references, "Known devices: columns of the table")
      ->delimiter(',')
      ->required();
  verb->add_option("--target", request.target,
                   "The device to predict: a column, which may be mostly empty")
      ->required();
  verb->add_option("--samples", request.samples, "Measurements on the target");
  verb->add_option("--reference-samples", request.reference_samples,
                   "Designs of each reference to learn from, by chance");
  verb->add_option("--trials", request.trials, "Repeat with other seeds and tell the means");
  verb->add_option("-o,--output", flags->output,
                   "Write all predictions: JSON, or a CSV table to search in");
  verb->footer(
      "A target whose cells are known is rehearsed: the samples are looked up, and the predictions "
      "held against\nthe rest. A target with fewer than half of its cells is a new device: all of "
      "them are used, and what to\nmeasure next is named.\n\nExample:\n"
      "  fleetfit transfer fewshot latency.csv --space nasbench201 --references pixel3,raspi4 "
      "--target mine --samples 10");
  context.on(verb, flags, run);
}

}  // namespace fleetfit::cli
