#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/open_dimensions.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/predicting.h"
#include "fleetfit/app/predicting_designs.h"

namespace fleetfit::cli {
namespace {

/// Networks to learn from or to be tested on.
struct NetworkFlags {
  std::string space;
  std::size_t samples = 0;
  std::optional<std::size_t> first;
  std::vector<std::string> files;
  OpenDimensionFlags open;
  double max_time_s = 10;
  bool stored = false;
};

/// Networks that are measured, unless there is a table.
void add_networks(CLI::App& verb, NetworkFlags& flags, CLI::Option& table) {
  auto* space = verb.add_option("--space", flags.space, "Designs of this space");
  verb.add_option("--samples", flags.samples, "How many designs of the space")->needs(space);
  verb.add_option("--first", flags.first, "Number of the first design, from 0")->needs(space);
  verb.add_option("FILE", flags.files, "Models: ONNX, TFLite or ncnn's .param");
  verb.add_option("--max-time", flags.max_time_s,
                  "Most seconds for each network that was not measured yet")
      ->check(CLI::Range(0.01, 86400.0));
  verb.add_flag("--stored", flags.stored,
                "Measure nothing: what the store has of the device, which may be elsewhere")
      ->excludes(&table);
  add_open_dimension_flags(verb, flags.open);
}

Result<app::NetworkChoice> networks_of(const Context& context, const NetworkFlags& flags) {
  FLEETFIT_ASSIGN(auto options, model_options(flags.open));
  if (!flags.space.empty() && flags.samples == 0)
    return fail(ErrorCode::invalid_input, "--space needs --samples");
  return app::NetworkChoice{.space = flags.space,
                            .samples = flags.samples,
                            .first = flags.first,
                            .seed = context.flags.seed,
                            .models = {flags.files.begin(), flags.files.end()},
                            .options = std::move(options)};
}

std::string lines_of(const std::vector<std::string>& lines, std::string_view before) {
  std::string text;
  for (const auto& line : lines) text += fmt::format("{}{}\n", before, line);
  return text;
}

std::string short_networks_text(const predict::ShortNetworks& law) {
  if (law.power <= 0) return "";
  return fmt::format(
      "networks below {:.3g} ms are faster than their kernels are in longer ones, by up to {:.0f} "
      "%\n",
      law.below_ms, 100 * (1 - law.factor(law.least_ms)));
}

std::string trained_text(const app::TrainedPredictor& trained) {
  TextTable table(
      "kernel | method | samples {} | error {:.1f} % | share of time {:.1f} % | settings");
  for (const auto& kind : trained.kinds) {
    table.add(kind.kind, kind.method, kind.samples, kind.mape, 100 * kind.share, kind.settings);
  }
  return table.text() +
         fmt::format(
             "\n{}: {} networks on {}, mean error of networks in cross-validation {:.1f} %\n",
             trained.output.string(), trained.identity.networks, trained.identity.device,
             trained.mape) +
         short_networks_text(trained.short_networks) + lines_of(trained.left_out, "left out: ");
}

std::string trained_on_table_text(const app::TrainedOnTable& trained) {
  return fmt::format(
      "{}: {} designs of {} on {}, {} of the {}, mean error of designs not seen {:.1f} %\n",
      trained.output.string(), trained.identity.networks, trained.space, trained.identity.device,
      trained.settings, trained.reads == "graph" ? "graph" : "encoding " + trained.reads,
      trained.mape);
}

struct TrainFlags {
  std::string device;
  std::string method = "auto";
  std::string output;
  std::string table;
  std::string encoding = "auto";
  std::optional<double> budget_s;
  NetworkFlags networks;
};

Result<Verdict> train_on_table(const Context& context, const TrainFlags& flags,
                               const std::stop_token& stop) {
  if (flags.networks.space.empty())
    return fail(ErrorCode::invalid_input, "--table needs --space, which is required");
  const auto table = app::table_column_from(flags.table);
  if (!table) return core::within("--table", table.error());
  const auto method = core::parse_name<predict::DesignMethod>(flags.method);
  if (!method) return core::within("--method", method.error());
  const core::SystemClock clock;
  return context.show(app::train_on_table(clock,
                                          {.space = flags.networks.space,
                                           .table = *table,
                                           .samples = flags.networks.samples,
                                           .method = *method,
                                           .encoding = flags.encoding,
                                           .budget_s = flags.budget_s,
                                           .output = flags.output,
                                           .seed = context.flags.seed,
                                           .threads = context.threads()},
                                          stop),
                      trained_on_table_text);
}

Result<Verdict> train_on_device(Context& context, const TrainFlags& flags,
                                const std::stop_token& stop) {
  const auto method = core::parse_name<predict::Method>(flags.method);
  if (!method) return core::within("--method", method.error());
  FLEETFIT_ASSIGN(auto networks, networks_of(context, flags.networks));
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  return context.show(
      app::train_predictor(workplace,
                           {.device = flags.device,
                            .method = *method,
                            .networks = std::move(networks),
                            .protocol = measure::protocol_within(flags.networks.max_time_s),
                            .output = flags.output,
                            .seed = context.flags.seed,
                            .threads = context.threads(),
                            .stored = flags.networks.stored},
                           context.progress(), stop),
      trained_text);
}

void add_train(CLI::App& predict, Context& context) {
  auto [verb, flags] = add_verb<TrainFlags>(
      predict, "train",
      "Learn a device's latency from networks measured on it; measures what is missing");
  auto* device = verb->add_option("--device", flags->device, "The device");
  verb->add_option("--method", flags->method,
                   "auto (the best of them for each kind of kernel), lasso, rf, gbdt, mlp or "
                   "table; with --table auto, linear, trees, table or graph");
  auto* table = verb->add_option(
      "--table", flags->table,
      "FILE.csv#COLUMN instead of a device: times of whole networks, designs of --space");
  table->excludes(device);
  verb->add_option("--encoding", flags->encoding,
                   "What is seen of a design: auto, or an encoding of the space")
      ->needs(table);
  verb->add_option("--budget-s", flags->budget_s,
                   "Most seconds to train a graph network; by default as long as it takes")
      ->needs(table)
      ->check(CLI::PositiveNumber);
  verb->add_option("-o,--output", flags->output, "The predictor's file to write")->required();
  add_networks(*verb, flags->networks, *table);
  verb->footer(
      "Thirty networks make a new device usable. Stopped work goes on where it was.\n\nExample:\n"
      "  fleetfit predict train --device local --space icpe --samples 30 -o local.json\n"
      "  fleetfit predict train --table cells.csv#pixel3 --space nasbench201 --samples 100 -o "
      "p.json");
  context.on(verb,
             [flags, device, table, &context](const std::stop_token& stop) -> Result<Verdict> {
               if (table->count() > 0) return train_on_table(context, *flags, stop);
               if (device->count() == 0)
                 return fail(ErrorCode::invalid_input, "--device or --table is required");
               return train_on_device(context, *flags, stop);
             });
}

std::string kernels_text(const predict::PredictedModel& model) {
  constexpr std::size_t kShown = 10;
  auto kernels = model.kernels;
  std::ranges::stable_sort(kernels, std::ranges::greater(), &predict::PricedKernel::ms);
  TextTable table("operators | kernel | ms {:.4f} | share {:.1f} %");
  for (std::size_t i = 0; i < std::min(kShown, kernels.size()); ++i) {
    table.add(kernels[i].name, kernels[i].kind, kernels[i].ms,
              100 * kernels[i].ms / model.latency_ms);
  }
  return fmt::format("\n{}, the most expensive of {} kernels; {:.4f} ms beside them\n{}",
                     model.model, kernels.size(), model.overhead_ms, table.text());
}

std::string unpriced_text(const predict::PredictedModel& model) {
  std::string text;
  for (const auto& one : model.unpriced) {
    text += fmt::format("guessed: {} in {}: {}{}\n", model.kernels[one.kernel].name, model.model,
                        one.reason,
                        one.nearest.empty() ? "" : fmt::format("; nearest is {}", one.nearest));
  }
  return text;
}

std::string predictions_text(const app::Predictions& predictions, const GlobalFlags& flags) {
  TextTable table("model | device | predicted ms {:.4g} | 90 % interval {} | guessed kernels {}");
  for (const auto& model : predictions.models) {
    table.add(model.model, predictions.predictor.device, model.latency_ms,
              fmt::format("{:.4g} to {:.4g}", model.interval90.low, model.interval90.high),
              fmt::format("{} of {}", model.unpriced.size(), model.kernels.size()));
  }
  std::string text = table.text();
  for (const auto& model : predictions.models) text += kernels_text(model);
  if (!flags.verbose) return text;
  for (const auto& model : predictions.models) text += unpriced_text(model);
  return text;
}

std::string predicted_designs_text(const app::PredictedDesigns& predictions) {
  TextTable table("design | device | predicted ms {:.4g} | 90 % interval {}");
  for (const auto& one : predictions.designs) {
    table.add(one.design, predictions.predictor.device, one.latency_ms,
              fmt::format("{:.4g} to {:.4g}", one.interval90.low, one.interval90.high));
  }
  return table.text();
}

void add_predict_run(CLI::App& predict, Context& context) {
  struct Flags {
    std::string predictor;
    std::string device;
    std::vector<std::string> files;
    std::vector<std::string> designs;
    OpenDimensionFlags open;
  };
  auto [verb, flags] =
      add_verb<Flags>(predict, "run", "How long models take on a device, without the device");
  verb->add_option("PREDICTOR", flags->predictor, "A predictor's file")->required();
  auto* files = verb->add_option("FILE", flags->files, "Models: ONNX, TFLite or ncnn's .param");
  auto* designs = verb->add_option("--design", flags->designs,
                                   "Designs, for a predictor that was trained with --table");
  designs->excludes(files);
  verb->add_option("--device", flags->device,
                   "Refuse a predictor that was not made for this device as it is now");
  add_open_dimension_flags(*verb, flags->open);
  verb->footer(
      "Kernels unlike all that were measured are priced by a guess and listed (--verbose, "
      "--json).\n\n"
      "Example:\n  fleetfit predict run local.json mobilenet_v2.onnx\n"
      "  fleetfit predict run p.json --design 334131 --design 421211");
  context.on(verb, [flags, files, designs, &context]() -> Result<Verdict> {
    if (designs->count() > 0)
      return context.show(app::predict_designs(flags->predictor, flags->designs),
                          predicted_designs_text);
    if (files->count() == 0) return fail(ErrorCode::invalid_input, "FILE or --design is required");
    FLEETFIT_ASSIGN(auto options, model_options(flags->open));
    if (!flags->device.empty()) {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      FLEETFIT_TRY(app::check_predictor(workplace, flags->predictor, flags->device));
    }
    FLEETFIT_ASSIGN(const auto predictions,
                    app::predict_models({.predictor = flags->predictor,
                                         .models = {flags->files.begin(), flags->files.end()},
                                         .options = std::move(options)}));
    return context.show(predictions, predictions_text(predictions, context.flags));
  });
}

std::string evaluation_text(const app::Evaluation& evaluation) {
  TextTable networks(
      "network | measured ms {:.4g} | predicted ms {:.4g} | 90 % interval {} | error {:+.1f} %");
  for (const auto& network : evaluation.networks) {
    networks.add(network.name, network.measured_ms, network.predicted_ms,
                 fmt::format("{:.4g} to {:.4g}", network.interval90.low, network.interval90.high),
                 100 * network.error());
  }
  TextTable kinds("kernel | number {} | error {:.1f} % | share of time {:.1f} %");
  for (const auto& kind : evaluation.kinds) {
    kinds.add(kind.kind, kind.kernels, kind.mape, 100 * kind.share);
  }
  return networks.text() + "\n" + kinds.text() +
         fmt::format(
             "\n{} networks on {}: mean error {:.2f} %, {:.0f} % of them within 5 %, {:.0f} % "
             "within 10 %; the 90 % intervals hold {:.0f} %\n",
             evaluation.networks.size(), evaluation.predictor.device, evaluation.mape,
             100 * evaluation.within_5pct, 100 * evaluation.within_10pct,
             100 * evaluation.coverage90) +
         lines_of(evaluation.left_out, "left out: ") + lines_of(evaluation.advice, "next: ");
}

std::string table_evaluation_text(const app::TableEvaluation& evaluation) {
  return fmt::format(
      "{} designs on {}: mean error {:.2f} %, {:.0f} % of them within 5 %, {:.0f} % within 10 %; "
      "the 90 % intervals hold {:.0f} %; rank correlation {:.3f}; {} that it was trained with are "
      "left out\n",
      evaluation.designs, evaluation.predictor.device, evaluation.mape,
      100 * evaluation.within_5pct, 100 * evaluation.within_10pct, 100 * evaluation.coverage90,
      evaluation.srcc, evaluation.left_out);
}

void add_eval(CLI::App& predict, Context& context) {
  struct Flags {
    std::string predictor;
    std::string plot;
    std::string table;
    NetworkFlags networks;
  };
  auto [verb, flags] = add_verb<Flags>(
      predict, "eval", "Hold a predictor against its device; measures what is missing");
  verb->add_option("PREDICTOR", flags->predictor, "A predictor's file")->required();
  verb->add_option("--plot", flags->plot, "Write a page of HTML with charts");
  auto* table = verb->add_option("--table", flags->table,
                                 "FILE.csv#COLUMN, for a predictor that was trained with --table");
  add_networks(*verb, flags->networks, *table);
  verb->footer(
      "Designs and models that the predictor was trained with are left out.\n\nExample:\n"
      "  fleetfit predict eval local.json --space icpe --samples 20 --plot local.html\n"
      "  fleetfit predict eval p.json --table cells.csv#pixel3");
  context.on(verb, [flags, table, &context](const std::stop_token& stop) -> Result<Verdict> {
    if (table->count() > 0) {
      FLEETFIT_ASSIGN(const auto column,
                      core::within("--table", app::table_column_from(flags->table)));
      return context.show(app::evaluate_on_table({.predictor = flags->predictor, .table = column}),
                          table_evaluation_text);
    }
    FLEETFIT_ASSIGN(auto networks, networks_of(context, flags->networks));
    FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
    return context.show(
        app::evaluate_predictor(workplace,
                                {.predictor = flags->predictor,
                                 .networks = std::move(networks),
                                 .protocol = measure::protocol_within(flags->networks.max_time_s),
                                 .plot = flags->plot,
                                 .threads = context.threads(),
                                 .stored = flags->networks.stored},
                                context.progress(), stop),
        evaluation_text);
  });
}

}  // namespace

void add_predict(CLI::App& program, Context& context) {
  auto* predict = program.add_subcommand("predict", "Predict latency without the device");
  predict->require_subcommand(1);
  add_train(*predict, context);
  add_predict_run(*predict, context);
  add_eval(*predict, context);
  add_predict_spec(*predict, context);
}

}  // namespace fleetfit::cli
