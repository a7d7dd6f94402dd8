#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/learning.h"
#include "fleetfit/core/json.h"

namespace fleetfit::cli {
namespace {

/// A device's latencies come from a source: "phone=device:phone".
Status add_measured(const std::vector<std::string>& texts, app::LearnData& data) {
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("--measure {}: expected DEVICE=SOURCE", text));
    }
    data.measured.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return {};
}

bool measures(const app::LearnData& data) {
  for (const auto& [device, source] : data.measured)
    if (app::measures(source)) return true;
  return false;
}

void add_data_flags(CLI::App& verb, app::LearnData& data) {
  verb.add_option("--space", data.space, "The space of designs")->type_name("SPACE")->required();
  verb.add_option("--device-features", data.device_features,
                  "What is known of the devices, CSV (docs/formats/device_features.md)")
      ->required();
  verb.add_option("--accuracy", data.accuracy, "Where the accuracy of a design comes from")
      ->type_name("SOURCE")
      ->required();
  verb.add_option("--energy-table", data.energy_table, "Energies by design and device, CSV");
  verb.add_option("--devices", data.devices, "Devices to learn from; all if none is named")
      ->delimiter(',');
}

void add_training_flags(CLI::App& verb, app::LearnTraining& training) {
  verb.add_option("--method", training.method,
                  "supervised: from searched optima; unsupervised: through the networks")
      ->check(CLI::IsMember({"supervised", "unsupervised"}));
  verb.add_option("--compute", training.compute, "Train on cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  verb.add_option("--members", training.members, "Networks of each ensemble for a cost")
      ->check(CLI::Range(2, 50));
  verb.add_option("--optimizers", training.optimizers, "Optimizer networks")
      ->check(CLI::Range(1, 50));
  verb.add_option("--effort", training.effort, "Multiplies the steps of all trainings")
      ->check(CLI::Range(0.001, 1000.0));
}

struct TrainFlags {
  app::LearnTrainRequest request;
  std::vector<std::string> measured;
  double max_time_s = 10;
};

Result<app::Workplace> workplace_for(const Context& context, const app::LearnData& data) {
  return measures(data) ? context.open_workplace() : context.open_existing_workplace();
}

Result<Verdict> run_train(Context& context, TrainFlags flags, const std::stop_token& stop) {
  auto& request = flags.request;
  FLEETFIT_TRY(add_measured(flags.measured, request.data));
  request.training.seed = context.flags.seed;
  request.training.threads = context.threads();
  request.data.sources.protocol = measure::protocol_within(flags.max_time_s);
  request.data.sources.seed = context.flags.seed;
  request.data.sources.threads = context.threads();
  FLEETFIT_ASSIGN(auto workplace, workplace_for(context, request.data));
  FLEETFIT_ASSIGN(const auto report,
                  app::learn_train(workplace, request, context.progress(), stop));
  return context.show(
      report,
      fmt::format(
          "learned from {} designs on {} devices in {:.0f} s\nrank correlation {:.3f} on devices "
          "that a network had not seen; safety margin {:.1f} %\n",
          report.designs, report.devices.size(), report.elapsed_s, report.rank_correlation,
          100 * report.margin));
}

void add_train(CLI::App& learn, Context& context) {
  auto [verb, flags] = add_verb<TrainFlags>(learn, "train", "Learn to optimize from many devices");
  auto& request = flags->request;
  add_data_flags(*verb, request.data);
  verb->add_option("--table", request.data.table, "Latencies by design and device, CSV");
  verb->add_option("--measure", flags->measured, "DEVICE=SOURCE of latencies not in the table")
      ->type_name("DEVICE=SOURCE");
  verb->add_option("--max-time", flags->max_time_s,
                   "Most seconds for each design that is measured by a device: source")
      ->check(CLI::Range(0.01, 86400.0));
  verb->add_option("--first-designs", request.exploration.first,
                   "Designs to measure at first; 0: all of the table");
  verb->add_option("--rounds", request.exploration.rounds,
                   "Rounds of measuring where the networks disagree")
      ->capture_default_str();
  verb->add_option("--round-designs", request.exploration.each, "Designs of a round")
      ->check(CLI::Range(1, 1'000'000));
  add_training_flags(*verb, request.training);
  verb->add_option("-o,--output", request.output, "The model to write")->required();
  verb->footer(
      "A training that was ended goes on when it is called again in the same way.\n\nExample:\n"
      "  fleetfit learn train --space nasbench201 --table latency.csv --device-features "
      "devices.csv --accuracy table:accuracy.csv#c10 -o model.json");
  context.on(verb, flags, run_train);
}

std::string answer_text(const app::LearnApplyReport& report) {
  const auto& answer = report.answer;
  std::string text =
      fmt::format("{}\naccuracy {:.2f}\n", report.space->format(answer.design), answer.accuracy);
  for (std::size_t i = 0; i < report.costs.size(); ++i) {
    const auto& cost = answer.costs[i];
    text += fmt::format("{} {:.4g}, nine of ten times at most {:.4g}", report.costs[i], cost.value,
                        cost.safe);
    if (cost.risk > 0)
      text += fmt::format("; over the budget with a chance of {:.0f} %", 100 * cost.risk);
    text += "\n";
  }
  if (!answer.keeps_limits)
    text += "no design is sure enough to keep the limits; this one comes nearest\n";
  std::vector<std::string_view> doubts;
  for (const auto doubt : answer.doubts) doubts.push_back(learned::to_string(doubt));
  if (!doubts.empty()) text += fmt::format("in doubt: {}\n", fmt::join(doubts, ", "));
  text += fmt::format("by {} in {:.0f} us\n",
                      answer.by_search ? "an ordinary search, as the optimizer was unsure,"
                                       : "the optimizer network",
                      report.elapsed_us);
  return text;
}

Result<Verdict> run_apply(Context& context, app::LearnApplyRequest request) {
  request.seed = context.flags.seed;
  request.threads = context.threads();
  FLEETFIT_ASSIGN(const auto report, app::learn_apply(request));
  context.show(report, answer_text);
  return done_if(report.answer.keeps_limits, "no design is sure enough to keep the limits");
}

void add_apply(CLI::App& learn, Context& context) {
  auto [verb, request] =
      add_verb<app::LearnApplyRequest>(learn, "apply", "The best design for a device, at once");
  verb->add_option("MODEL", request->model, "What learn train wrote")->required();
  verb->add_option("--device-features", request->device_features, "What is known of devices, CSV")
      ->required();
  verb->add_option("--device", request->device, "The device: a row of the features")->required();
  verb->add_option("--budget-ms", request->budget_ms, "Most latency");
  verb->add_option("--budget-mj", request->budget_mj, "Most energy");
  verb->add_option("--sure", request->sure,
                   "How likely a budget has to be kept; less is taken if no design has as much")
      ->check(CLI::Range(0.01, 0.99));
  verb->add_option("--weights", request->weights,
                   "Instead of budgets: weights of energy and latency, or of latency alone")
      ->delimiter(',');
  verb->add_flag("--never-search", request->never_search,
                 "Keep the optimizer's answer where it is unsure");
  verb->footer(
      "Exit status 1: no design is sure enough to keep the budget; the one that comes nearest is "
      "told.\n\nExample:\n  fleetfit learn apply model.json --device-features devices.csv --device "
      "mine --budget-ms 20");
  context.on(verb, request, run_apply);
}

Result<Verdict> run_bulk(Context& context, app::LearnBulkRequest request,
                         const std::stop_token& stop) {
  request.seed = context.flags.seed;
  request.threads = context.threads();
  FLEETFIT_ASSIGN(const auto report, app::learn_bulk(request, context.progress(), stop));
  return context.show(
      report,
      fmt::format(
          "{} devices in {:.1f} s, {:.0f} us for one answer on one thread, {} of memory\n{} within "
          "their budget as likely as not, {} in doubt, {} different designs\n",
          report.devices, report.elapsed_s, report.answer_us,
          with_prefix(report.peak_memory_bytes, "B"), report.within, report.unsure,
          report.designs));
}

void add_bulk(CLI::App& learn, Context& context) {
  auto [verb, request] =
      add_verb<app::LearnBulkRequest>(learn, "bulk", "Answers for many synthetic devices");
  verb->add_option("MODEL", request->model, "What learn train wrote")->required();
  verb->add_option("--device-features", request->device_features,
                   "Devices that synthetic ones are mixed from, CSV")
      ->required();
  verb->add_option("--devices", request->devices, "How many");
  verb->add_option("--budget-factor", request->budget_factor,
                   "Budget of each, relative to a typical design's latency there");
  verb->add_option("-o,--output", request->output, "A table of all answers, CSV");
  verb->footer(
      "Example:\n  fleetfit learn bulk model.json --device-features devices.csv --devices 1000000");
  context.on(verb, request, run_bulk);
}

struct EvalFlags {
  app::LearnEvalRequest request;
  std::vector<std::string> splits;
  std::string output;
};

std::string eval_text(const app::LearnEvalReport& report) {
  TextTable ways(
      "way | budgets over | cases {} | median loss {:.2f} | p90 loss {:.2f} | mean loss {:.2f} | "
      "in budget % {:.1f} | us {:.0f}");
  for (const auto& one : report.ways) {
    ways.add(one.way, name_of(one.spread), one.cases, one.median_loss, one.p90_loss, one.mean_loss,
             100 * one.kept, one.answer_us);
  }
  TextTable devices(
      "device | split {} | rank correlation {:.3f} | few-shot {:.3f} | few-shot, same {} | error % "
      "{:.1f} | distance {:.2f}");
  for (const auto& one : report.devices) {
    devices.add(one.device, one.split, one.srcc, one.few_shot_srcc,
                one.few_shot_same_srcc ? fmt::format("{:.3f}", *one.few_shot_same_srcc) : "",
                one.mape, one.distance);
  }
  return ways.text() + "\n" + devices.text() +
         fmt::format("\n{:.0f} s of training for each split; {} answers in doubt\n",
                     report.training_s, report.unsure) +
         (report.advice.empty() ? "" : report.advice + "\n");
}

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

Result<Verdict> run_eval(Context& context, EvalFlags flags, const std::stop_token& stop) {
  auto& request = flags.request;
  for (const auto& split : flags.splits) request.splits.push_back(names_of(split));
  request.training.seed = context.flags.seed;
  request.training.threads = context.threads();
  request.data.sources.seed = context.flags.seed;
  FLEETFIT_ASSIGN(auto workplace, workplace_for(context, request.data));
  return context.show(app::learn_eval(workplace, request, context.progress(), stop), eval_text);
}

void add_eval(CLI::App& learn, Context& context) {
  auto [verb, flags] =
      add_verb<EvalFlags>(learn, "eval", "Leave devices out, learn, and answer for them");
  auto& request = flags->request;
  add_data_flags(*verb, request.data);
  verb->add_option("--table", request.data.table, "Latencies by design and device, CSV")
      ->required();
  add_training_flags(*verb, request.training);
  verb->add_option("--leave-out", flags->splits,
                   "Devices that are left out together: a,b,c; once for each training")
      ->required();
  verb->add_option("--budgets", request.budgets,
                   "Budgets of each device: so many over the range of its latencies, so many over "
                   "their quantiles")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--choose-references", request.choose_references,
                   "Instead of the file's features: latencies of so many designs, chosen by what "
                   "the known devices of a split teach");
  verb->add_flag("!--no-compare", request.compare, "Leave out the other ways to choose");
  verb->footer(
      "Losses are points of true accuracy below the best design within the budget.\n\nExample:\n"
      "  fleetfit learn eval --space nasbench201 --table latency.csv --device-features devices.csv "
      "--accuracy table:accuracy.csv#c10 --leave-out pixel3,raspi4 --leave-out fpga");
  context.on(verb, flags, run_eval);
}

}  // namespace

void add_learn(CLI::App& program, Context& context) {
  auto* learn =
      program.add_subcommand("learn", "The best design for a new device at once, by networks");
  learn->require_subcommand(1);
  add_learn_features(*learn, context);
  add_train(*learn, context);
  add_apply(*learn, context);
  add_bulk(*learn, context);
  add_eval(*learn, context);
}

}  // namespace fleetfit::cli
