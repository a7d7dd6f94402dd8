#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/open_dimensions.h"
#include "cli/predict_designs.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/paper_devices.h"
#include "fleetfit/app/predicting.h"
#include "fleetfit/core/interrupt.h"

namespace fleetfit::cli {
namespace {

using Align = TextTable::Align;

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
      ->check(CLI::Range(0.01, 86400.0))
      ->capture_default_str();
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
  TextTable table({{"kernel"},
                   {"method"},
                   {"samples", Align::right},
                   {"error", Align::right},
                   {"share of time", Align::right},
                   {"settings"}});
  for (const auto& kind : trained.kinds) {
    table.add({kind.kind, kind.method, std::to_string(kind.samples),
               fmt::format("{:.1f} %", kind.mape), fmt::format("{:.1f} %", 100 * kind.share),
               kind.settings});
  }
  return table.text() +
         fmt::format(
             "\n{}: {} networks on {}, mean error of networks in cross-validation {:.1f} %\n",
             trained.output.string(), trained.identity.networks, trained.identity.device,
             trained.mape) +
         short_networks_text(trained.short_networks) + lines_of(trained.left_out, "left out: ");
}

void add_train(CLI::App& predict, Context& context) {
  struct Flags {
    std::string device;
    std::string method = "auto";
    std::string output;
    std::string table;
    std::string encoding = "auto";
    std::optional<double> budget_s;
    NetworkFlags networks;

    TableTraining of_table() const {
      return {.table = table,
              .space = networks.space,
              .samples = networks.samples,
              .method = method,
              .encoding = encoding,
              .budget_s = budget_s,
              .output = output};
    }
  };
  auto flags = std::make_shared<Flags>();
  auto* verb = predict.add_subcommand(
      "train", "Learn a device's latency from networks measured on it; measures what is missing");
  auto* device = verb->add_option("--device", flags->device, "The device");
  verb->add_option("--method", flags->method,
                   "auto (the best of them for each kind of kernel), lasso, rf, gbdt, mlp or "
                   "table; with --table auto, linear, trees, table or graph")
      ->capture_default_str();
  auto* table = verb->add_option(
      "--table", flags->table,
      "FILE.csv#COLUMN instead of a device: times of whole networks, designs of --space");
  table->excludes(device);
  verb->add_option("--encoding", flags->encoding,
                   "What is seen of a design: auto, or an encoding of the space")
      ->needs(table)
      ->capture_default_str();
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
  verb->callback([flags, device, table, &context] {
    if (device->count() + table->count() == 0) throw CLI::RequiredError("--device or --table");
    if (table->count() > 0) {
      if (flags->networks.space.empty()) throw CLI::RequiredError("--table needs --space, which");
      context.action = [flags, &context] { return train_on_table(context, flags->of_table()); };
      return;
    }
    context.action = [flags, &context]() -> Result<int> {
      const auto method = core::parse_name<predict::Method>(flags->method);
      if (!method) return core::within("--method", method.error());
      FLEETFIT_ASSIGN(auto networks, networks_of(context, flags->networks));
      const core::Interrupt interrupt;
      FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
      FLEETFIT_ASSIGN(
          const auto trained,
          app::train_predictor(workplace,
                               {.device = flags->device,
                                .method = *method,
                                .networks = std::move(networks),
                                .protocol = measure::protocol_within(flags->networks.max_time_s),
                                .output = flags->output,
                                .seed = context.flags.seed,
                                .threads = context.threads(),
                                .stored = flags->networks.stored},
                               context.progress(), interrupt.token()));
      if (context.flags.json) {
        context.print(app::to_json(trained));
      } else {
        context.print(trained_text(trained));
      }
      return 0;
    };
  });
}

std::string kernels_text(const predict::PredictedModel& model) {
  constexpr std::size_t kShown = 10;
  auto kernels = model.kernels;
  std::ranges::stable_sort(kernels, std::ranges::greater(), &predict::PricedKernel::ms);
  TextTable table({{"operators"}, {"kernel"}, {"ms", Align::right}, {"share", Align::right}});
  for (std::size_t i = 0; i < std::min(kShown, kernels.size()); ++i) {
    table.add({kernels[i].name, kernels[i].kind, fmt::format("{:.4f}", kernels[i].ms),
               fmt::format("{:.1f} %", 100 * kernels[i].ms / model.latency_ms)});
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
  TextTable table({{"model"},
                   {"device"},
                   {"predicted ms", Align::right},
                   {"90 % interval", Align::right},
                   {"guessed kernels", Align::right}});
  for (const auto& model : predictions.models) {
    table.add({model.model, predictions.predictor.device, fmt::format("{:.4g}", model.latency_ms),
               fmt::format("{:.4g} to {:.4g}", model.interval90.low, model.interval90.high),
               fmt::format("{} of {}", model.unpriced.size(), model.kernels.size())});
  }
  std::string text = table.text();
  for (const auto& model : predictions.models) text += kernels_text(model);
  if (!flags.verbose) return text;
  for (const auto& model : predictions.models) text += unpriced_text(model);
  return text;
}

void add_predict_run(CLI::App& predict, Context& context) {
  struct Flags {
    std::string predictor;
    std::string device;
    std::vector<std::string> files;
    std::vector<std::string> designs;
    OpenDimensionFlags open;
  };
  auto flags = std::make_shared<Flags>();
  auto* verb =
      predict.add_subcommand("run", "How long models take on a device, without the device");
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
  verb->callback([flags, files, designs, &context] {
    if (files->count() + designs->count() == 0) throw CLI::RequiredError("FILE or --design");
    if (designs->count() > 0) {
      context.action = [flags, &context] {
        return predict_designs(context, flags->predictor, flags->designs);
      };
      return;
    }
    context.action = [flags, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto options, model_options(flags->open));
      if (!flags->device.empty()) {
        FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
        FLEETFIT_TRY(app::check_predictor(workplace, flags->predictor, flags->device));
      }
      FLEETFIT_ASSIGN(const auto predictions,
                      app::predict_models({.predictor = flags->predictor,
                                           .models = {flags->files.begin(), flags->files.end()},
                                           .options = std::move(options)}));
      if (context.flags.json) {
        context.print(app::to_json(predictions));
      } else {
        context.print(predictions_text(predictions, context.flags));
      }
      return 0;
    };
  });
}

std::string evaluation_text(const app::Evaluation& evaluation) {
  TextTable networks({{"network"},
                      {"measured ms", Align::right},
                      {"predicted ms", Align::right},
                      {"90 % interval", Align::right},
                      {"error", Align::right}});
  for (const auto& network : evaluation.networks) {
    networks.add({network.name, fmt::format("{:.4g}", network.measured_ms),
                  fmt::format("{:.4g}", network.predicted_ms),
                  fmt::format("{:.4g} to {:.4g}", network.interval90.low, network.interval90.high),
                  fmt::format("{:+.1f} %", 100 * network.error())});
  }
  TextTable kinds({{"kernel"},
                   {"number", Align::right},
                   {"error", Align::right},
                   {"share of time", Align::right}});
  for (const auto& kind : evaluation.kinds) {
    kinds.add({kind.kind, std::to_string(kind.kernels), fmt::format("{:.1f} %", kind.mape),
               fmt::format("{:.1f} %", 100 * kind.share)});
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

void add_eval(CLI::App& predict, Context& context) {
  struct Flags {
    std::string predictor;
    std::string plot;
    std::string table;
    NetworkFlags networks;
  };
  auto flags = std::make_shared<Flags>();
  auto* verb = predict.add_subcommand(
      "eval", "Hold a predictor against its device; measures what is missing");
  verb->add_option("PREDICTOR", flags->predictor, "A predictor's file")->required();
  verb->add_option("--plot", flags->plot, "Write a page of HTML with charts");
  auto* table = verb->add_option("--table", flags->table,
                                 "FILE.csv#COLUMN, for a predictor that was trained with --table");
  add_networks(*verb, flags->networks, *table);
  verb->footer(
      "Designs and models that the predictor was trained with are left out.\n\nExample:\n"
      "  fleetfit predict eval local.json --space icpe --samples 20 --plot local.html\n"
      "  fleetfit predict eval p.json --table cells.csv#pixel3");
  verb->callback([flags, table, &context] {
    if (table->count() > 0) {
      context.action = [flags, &context] {
        return evaluate_on_table(context, flags->predictor, flags->table);
      };
      return;
    }
    context.action = [flags, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto networks, networks_of(context, flags->networks));
      const core::Interrupt interrupt;
      FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
      FLEETFIT_ASSIGN(
          const auto evaluation,
          app::evaluate_predictor(workplace,
                                  {.predictor = flags->predictor,
                                   .networks = std::move(networks),
                                   .protocol = measure::protocol_within(flags->networks.max_time_s),
                                   .plot = flags->plot,
                                   .threads = context.threads(),
                                   .stored = flags->networks.stored},
                                  context.progress(), interrupt.token()));
      if (context.flags.json) {
        context.print(app::to_json(evaluation));
      } else {
        context.print(evaluation_text(evaluation));
      }
      return 0;
    };
  });
}

struct SpecFlags {
  app::PaperDeviceRequest request;
  predict::RooflineSpecification roofline;
  std::string accelerator;
};

Result<int> write_spec(const Context& context, const SpecFlags& flags) {
  auto request = flags.request;
  request.specification = flags.roofline;
  if (!flags.accelerator.empty()) {
    const auto accelerator = app::find_accelerator(flags.accelerator);
    if (!accelerator) return core::within("--accelerator", accelerator.error());
    request.specification = *accelerator;
  }
  FLEETFIT_TRY(app::write_paper_device(request));
  if (context.flags.json) {
    context.print(nlohmann::ordered_json{{"output", request.output.string()}});
  } else {
    context.print(fmt::format("{}: {} on paper\n", request.output.string(), request.name));
  }
  return 0;
}

void add_spec(CLI::App& predict, Context& context) {
  auto flags = std::make_shared<SpecFlags>();
  auto* verb = predict.add_subcommand(
      "spec", "Write a device that exists on paper: a roofline, or a tiled accelerator");
  verb->add_option("NAME", flags->request.name, "The device's name")->required();
  verb->add_option("-o,--output", flags->request.output, "The predictor's file to write")
      ->required();
  auto* gflops = verb->add_option("--gflops", flags->roofline.gflops, "10^9 FLOPs per second");
  auto* bandwidth =
      verb->add_option("--gbytes", flags->roofline.gbytes_per_s, "10^9 bytes per second of memory");
  gflops->needs(bandwidth);
  bandwidth->needs(gflops);
  verb->add_option("--kernel-us", flags->roofline.kernel_us, "Microseconds to start a kernel")
      ->capture_default_str();
  verb->add_option("--precision", flags->request.precision, "fp32 or int8")->capture_default_str();
  verb->add_option("--rules", flags->request.rules,
                   "How networks become kernels: engine, plain, tflite-gpu:mali-g76, …")
      ->capture_default_str();
  verb->add_option("--accelerator", flags->accelerator,
                   "A tiled accelerator instead: zcu102-1 to zcu102-9")
      ->excludes(gflops);
  verb->footer(
      "Its numbers are always predicted; predict run takes the file.\n\nExample:\n"
      "  fleetfit predict spec board --gflops 30 --gbytes 4 -o board.json\n"
      "  fleetfit predict spec fpga --accelerator zcu102-3 --precision int8 -o fpga.json");
  verb->callback([gflops, flags, &context] {
    if (gflops->count() == 0 && flags->accelerator.empty())
      throw CLI::RequiredError("--gflops and --gbytes, or --accelerator,");
    context.action = [flags, &context] { return write_spec(context, *flags); };
  });
}

}  // namespace

void add_predict(CLI::App& program, Context& context) {
  auto* predict = program.add_subcommand("predict", "Predict latency without the device");
  predict->require_subcommand(1);
  add_train(*predict, context);
  add_predict_run(*predict, context);
  add_eval(*predict, context);
  add_spec(*predict, context);
}

}  // namespace fleetfit::cli
