#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/open_dimensions.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/running.h"

namespace fleetfit::cli {
namespace {

struct RunFlags {
  app::RunRequest request;
  std::string file;
  std::string folder;
  std::vector<std::string> inputs;
  OpenDimensionFlags open;
  bool random_inputs = false;
};

Result<std::vector<app::InputFile>> parse_inputs(const std::vector<std::string>& texts) {
  std::vector<app::InputFile> inputs;
  for (const auto& text : texts) {
    // Names of tensors may hold '=', names of files seldom do.
    const auto equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("--input {}: expected NAME=FILE.npy", text));
    }
    inputs.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return inputs;
}

std::string run_text(const app::RunSummary& summary) {
  TextTable table("output | type | shape | file");
  for (const auto& output : summary.outputs) {
    std::string shape;
    for (const auto extent : output.shape)
      shape += (shape.empty() ? "" : "x") + std::to_string(extent);
    table.add(output.name, output.dtype, shape.empty() ? "scalar" : shape, output.file);
  }
  std::string text = table.text();
  for (const auto& output : summary.outputs)
    if (output.odd.any())
      text +=
          fmt::format("Output {} holds values that are {}.\n", output.name, to_string(output.odd));
  for (const auto& note : summary.notes) text += fmt::format("The model was {}.\n", note);
  return text;
}

std::string check_text(const app::CheckReport& report) {
  TextTable table("output | max abs diff {:.3g} | max rel diff {:.3g}");
  for (const auto& output : report.outputs) {
    table.add(output.name, output.max_abs_diff, output.max_rel_diff);
  }
  std::string text = table.text();
  const auto add_odd = [&text](const std::string& name, const app::OddValues& odd,
                               std::string_view where) {
    if (odd.any())
      text += fmt::format("Output {} holds values {} that are {}.\n", name, where, to_string(odd));
  };
  for (const auto& output : report.outputs) {
    add_odd(output.name, output.engine_odd, "of the engine");
    add_odd(output.name, output.other_odd, "of the other runtime");
  }
  return text + fmt::format("{}: relative differences are to be below {}\n",
                            report.pass ? "pass" : "FAIL", report.bound);
}

Result<Verdict> run_run(Context& context, RunFlags& flags) {
  FLEETFIT_ASSIGN(auto options, model_options(flags.open));
  FLEETFIT_ASSIGN(auto inputs, parse_inputs(flags.inputs));
  auto& request = flags.request;
  request.model = flags.file;
  request.folder = flags.folder;
  request.options = std::move(options);
  request.inputs = std::move(inputs);
  if (flags.random_inputs) request.missing = app::MissingInputs::random;
  request.seed = context.flags.seed;
  request.threads = context.threads();
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  return context.show(app::run_model(workplace, request), run_text);
}

struct CheckFlags {
  app::CheckRequest request;
  std::string file;
  OpenDimensionFlags open;
};

Result<Verdict> run_check(Context& context, CheckFlags& flags) {
  FLEETFIT_ASSIGN(auto options, model_options(flags.open));
  auto& request = flags.request;
  request.model = flags.file;
  request.options = std::move(options);
  request.seed = context.flags.seed;
  request.threads = context.threads();
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  FLEETFIT_ASSIGN(const auto report, app::check_model(workplace, request));
  context.show(report, check_text);
  return done_if(report.pass,
                 fmt::format("{}: outputs differ by {} or more", flags.file, report.bound));
}

}  // namespace

void add_model_run(CLI::App& model, Context& context) {
  auto [verb, flags] = add_verb<RunFlags>(model, "run", "Run a model once and write its outputs");
  verb->add_option("FILE", flags->file, "A model: ONNX, TFLite or ncnn's .param")->required();
  verb->add_option("--device", flags->request.device, "Where to run it");
  verb->add_option("--input", flags->inputs, "Values of an input, as numpy writes them")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  verb->add_flag("--random-inputs", flags->random_inputs,
                 "Random values, by --seed, for the inputs that are not given");
  verb->add_option("-o,--output", flags->folder, "Folder for one .npy file of each output")
      ->type_name("DIR")
      ->required();
  add_open_dimension_flags(*verb, flags->open);
  verb->footer(
      "Example:\n  fleetfit model run net.onnx --input image=image.npy -o outputs\n"
      "  fleetfit model run net.onnx --random-inputs --device ort -o outputs");
  context.on(verb, flags, run_run);
}

void add_model_check(CLI::App& model, Context& context) {
  auto [verb, flags] = add_verb<CheckFlags>(
      model, "check", "Hold the engine's outputs against those of another runtime");
  verb->add_option("FILE", flags->file, "A model: ONNX, TFLite or ncnn's .param")->required();
  verb->add_option("--against", flags->request.against,
                   "A runtime (onnxruntime, reference, exec:COMMAND, …) or the name of a device")
      ->type_name("RUNTIME")
      ->required();
  verb->add_option("--precision", flags->request.precision,
                   "int8: quantize a float model before, with ranges of random inputs");
  add_open_dimension_flags(*verb, flags->open);
  verb->footer(fmt::format(
      "Both run on the same random inputs (--seed). The relative difference of an output is the\n"
      "largest difference of two values divided by the largest magnitude in the other runtime's\n"
      "output. It is to be below {} for float models and below {} for quantized ones, which\n"
      "round in each layer; differences below {} always pass. Otherwise, or if a value is NaN,\n"
      "the exit status is 1.\n\n"
      "Example:\n  fleetfit model check net.onnx --against onnxruntime\n"
      "  fleetfit model check net.onnx --against reference --precision int8",
      app::kFloatBound, app::kQuantizedBound, app::kFloatNoise));
  context.on(verb, flags, run_check);
}

}  // namespace fleetfit::cli
