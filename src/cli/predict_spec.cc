#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/program.h"
#include "fleetfit/app/paper_devices.h"

namespace fleetfit::cli {
namespace {

struct SpecFlags {
  app::PaperDeviceRequest request;
  predict::RooflineSpecification roofline = {.gflops = 0, .gbytes_per_s = 0};  ///< to be said
  std::string accelerator;
};

Result<Verdict> write_spec(const Context& context, const SpecFlags& flags) {
  auto request = flags.request;
  request.specification = flags.roofline;
  if (!flags.accelerator.empty()) {
    const auto accelerator = app::find_accelerator(flags.accelerator);
    if (!accelerator) return core::within("--accelerator", accelerator.error());
    request.specification = *accelerator;
  }
  FLEETFIT_TRY(app::write_paper_device(request));
  return context.show(nlohmann::ordered_json{{"output", request.output.string()}},
                      fmt::format("{}: {} on paper\n", request.output.string(), request.name));
}

}  // namespace

void add_predict_spec(CLI::App& predict, Context& context) {
  auto [verb, flags] = add_verb<SpecFlags>(
      predict, "spec", "Write a device that exists on paper: a roofline, or a tiled accelerator");
  verb->add_option("NAME", flags->request.name, "The device's name")->required();
  verb->add_option("-o,--output", flags->request.output, "The predictor's file to write")
      ->required();
  auto* gflops = verb->add_option("--gflops", flags->roofline.gflops, "10^9 FLOPs per second");
  auto* bandwidth =
      verb->add_option("--gbytes", flags->roofline.gbytes_per_s, "10^9 bytes per second of memory");
  gflops->needs(bandwidth);
  bandwidth->needs(gflops);
  verb->add_option("--kernel-us", flags->roofline.kernel_us, "Microseconds to start a kernel");
  verb->add_option("--precision", flags->request.precision, "fp32 or int8");
  verb->add_option("--rules", flags->request.rules,
                   "How networks become kernels: engine, plain, tflite-gpu:mali-g76, …");
  verb->add_option("--accelerator", flags->accelerator,
                   "A tiled accelerator instead: zcu102-1 to zcu102-9")
      ->excludes(gflops);
  verb->footer(
      "Its numbers are always predicted; predict run takes the file.\n\nExample:\n"
      "  fleetfit predict spec board --gflops 30 --gbytes 4 -o board.json\n"
      "  fleetfit predict spec fpga --accelerator zcu102-3 --precision int8 -o fpga.json");
  context.on(verb, [gflops, flags, &context]() -> Result<Verdict> {
    if (gflops->count() == 0 && flags->accelerator.empty())
      return fail(ErrorCode::invalid_input, "--gflops and --gbytes, or --accelerator, is required");
    return write_spec(context, *flags);
  });
}

}  // namespace fleetfit::cli
