#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/open_dimensions.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/models.h"
#include "fleetfit/app/quantizing.h"

namespace fleetfit::cli {
namespace {

struct ConvertFlags {
  std::string in;
  std::string out;
  OpenDimensionFlags open;
  bool simplify = false;
  std::vector<std::string> without;
  std::string precision;
  app::QuantizeRequest quantize;
};

std::string file_text(const app::ConvertSummary& summary) {
  return fmt::format("{}: {} operators, {} in the original, {}\n", summary.output,
                     summary.ops_after, summary.ops_before, with_prefix(summary.bytes, "B"));
}

std::string quantized_text(const app::QuantizeSummary& summary) {
  const std::string text =
      file_text(summary.file) + fmt::format("calibrated with {} samples\n", summary.samples);
  const auto& accuracy = summary.accuracy;
  if (!accuracy) return text + fmt::format("no accuracy: {}\n", summary.why_no_accuracy);
  const double drop = accuracy->float_share - accuracy->int8_share;
  return text + fmt::format(
                    "accuracy on {} images: {:.2f} % float, {:.2f} % int8, a drop of {:.2f} "
                    "percentage points\n",
                    accuracy->images, 100 * accuracy->float_share, 100 * accuracy->int8_share,
                    100 * drop);
}

Result<Verdict> quantize(Context& context, ConvertFlags& flags, app::ModelOptions options) {
  if (flags.quantize.calibrate.empty()) {
    return fail(ErrorCode::invalid_input, "--precision int8 needs --calibrate DATASET or random");
  }
  auto& request = flags.quantize;
  request.in = flags.in;
  request.out = flags.out;
  request.options = std::move(options);
  request.seed = context.flags.seed;
  request.threads = context.threads();
  return context.show(app::quantize_model(request, context.progress()), quantized_text);
}

Result<Verdict> run_convert(Context& context, ConvertFlags& flags) {
  FLEETFIT_ASSIGN(auto options, model_options(flags.open));
  if (flags.precision == "int8") return quantize(context, flags, std::move(options));
  if (!flags.precision.empty() && flags.precision != "fp32") {
    return fail(ErrorCode::invalid_input,
                fmt::format("--precision: \"{}\" is neither fp32 nor int8", flags.precision));
  }
  FLEETFIT_ASSIGN(
      const auto summary,
      app::convert_model(flags.in, flags.out,
                         {.model = options, .simplify = flags.simplify, .without = flags.without}));
  return context.show(summary, file_text);
}

void add_quantize_flags(CLI::App& verb, ConvertFlags& flags) {
  auto* precision = verb.add_option("--precision", flags.precision,
                                    "int8: quantize a float model after its training");
  auto& request = flags.quantize;
  verb.add_option("--calibrate", request.calibrate,
                  "Data that tells the ranges of int8: fashion-mnist, idx:DIR, cifar10:DIR, "
                  "images:DIR or random")
      ->type_name("DATASET")
      ->needs(precision);
  verb.add_option("--method", request.method, "Ranges: min-max or percentile (99.99 %)");
  verb.add_option("--samples", request.samples, "Images to calibrate with")
      ->check(CLI::Range(1, 1'000'000));
  verb.add_option("--test-images", request.test_images, "Most images to take the accuracy on")
      ->check(CLI::Range(1, 10'000'000));
  verb.add_option("--mean", request.mean, "Of each channel, subtracted from pixels of 0 to 1")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--std", request.stddev, "Of each channel, by which pixels are divided then")
      ->delimiter(',')
      ->allow_extra_args(false);
}

}  // namespace

void add_model_convert(CLI::App& model, Context& context) {
  auto [verb, flags] = add_verb<ConvertFlags>(
      model, "convert", "Write a model of any format as ONNX (opset 17), also quantized to 8 bits");
  verb->add_option("IN", flags->in, "A model: ONNX, TFLite or ncnn's .param")->required();
  verb->add_option("OUT", flags->out, "The ONNX file to write")->required();
  auto* simplify = verb->add_flag("--simplify", flags->simplify,
                                  "Fold constants and batch norms, drop what does nothing");
  std::string passes;
  for (const auto& pass : app::list_passes())
    passes += fmt::format("\n  {:<28}{}", pass.name, pass.summary);
  verb->add_option("--without", flags->without, "A pass to leave out of --simplify")
      ->type_name("PASS")
      ->allow_extra_args(false)
      ->needs(simplify);
  add_quantize_flags(*verb, *flags);
  add_open_dimension_flags(*verb, flags->open);
  verb->footer("Passes:" + passes +
               "\n\nExample:\n  fleetfit model convert detector.tflite detector.onnx\n  fleetfit "
               "model convert net.onnx small.onnx --simplify --without fold_batch_norm\n  fleetfit "
               "model convert net.onnx net8.onnx --precision int8 --calibrate images:photos");
  context.on(verb, flags, run_convert);
}

}  // namespace fleetfit::cli
