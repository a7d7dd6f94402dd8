#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/open_dimensions.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/kernels.h"

namespace fleetfit::cli {
namespace {

struct KernelsFlags {
  std::string file;
  std::string gpu;
  std::string rules;
  std::string device;
  bool verify = false;
  OpenDimensionFlags open;
};

std::string counts_text(const app::KernelsSummary& summary) {
  std::map<std::string, int> counts;
  for (const auto& kernel : summary.kernels) ++counts[kernel.kernel];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts) parts.push_back(fmt::format("{} {}", count, kind));
  const auto changes = std::ranges::count_if(
      summary.kernels, [](const auto& kernel) { return kernel.reordered_size > 0; });
  return fmt::format("{} operators become {} kernels: {}\n", summary.before_fusion,
                     summary.after_fusion, fmt::join(parts, ", ")) +
         (changes > 0 ? fmt::format("layouts are changed before {} of them\n", changes) : "");
}

std::string kernels_text(const app::KernelsSummary& summary) {
  TextTable table("kernel | operators");
  for (const auto& kernel : summary.kernels) {
    table.add(kernel.kernel, fmt::format("{}", fmt::join(kernel.ops, " + ")));
  }
  return table.text() + counts_text(summary);
}

std::string difference_text(const app::KernelDifference& difference) {
  std::vector<std::string> ran;
  for (const auto& ops : difference.ran) ran.push_back(fmt::format("{}", fmt::join(ops, " + ")));
  const std::string there =
      ran.empty() ? "was not run" : "ran as " + fmt::format("{}", fmt::join(ran, "; "));
  if (difference.deduced.empty()) return fmt::format("not deduced: {}\n", there);
  return fmt::format("{}: {}\n", fmt::join(difference.deduced, " + "), there);
}

std::string check_text(const app::KernelsCheck& check) {
  std::string text;
  for (const auto& difference : check.differences) text += difference_text(difference);
  for (const auto& entry : check.unmatched) {
    text += fmt::format("of no operator: {} ({}), {:.4f} ms\n", entry.name, entry.type, entry.ms);
  }
  if (!check.note.empty()) text += fmt::format("The model was {}.\n", check.note);
  return text +
         fmt::format("{}: of {} deduced kernels {} ran as such on {}, {:.1f} % of its time\n",
                     check.pass() ? "pass" : "FAIL", check.deduced.after_fusion, check.alike,
                     check.device, check.ms > 0 ? 100 * check.alike_ms / check.ms : 100);
}

Result<app::KernelsRequest> request_of(const KernelsFlags& flags) {
  FLEETFIT_ASSIGN(auto options, model_options(flags.open));
  app::KernelsRequest request{.model = flags.file,
                              .options = std::move(options),
                              .rules = flags.rules,
                              .target = flags.gpu};
  if (request.rules.empty() && !flags.gpu.empty()) request.rules = "tflite-gpu";
  if (request.rules.empty() && !flags.verify) {
    return fail(ErrorCode::invalid_input,
                "kernels needs --gpu or --rules, or --verify with a --device");
  }
  return request;
}

Result<Verdict> verify(Context& context, const KernelsFlags& flags, app::KernelsRequest request) {
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  FLEETFIT_ASSIGN(const auto check, app::verify_kernels(workplace, {.kernels = std::move(request),
                                                                    .device = flags.device,
                                                                    .threads = context.threads()}));
  context.show(check, check_text);
  return done_if(check.pass(), fmt::format("{} kernels are not those that {} has run",
                                           check.differences.size(), flags.device));
}

Result<Verdict> run_kernels(Context& context, const KernelsFlags& flags) {
  FLEETFIT_ASSIGN(auto request, request_of(flags));
  if (flags.verify) return verify(context, flags, std::move(request));
  return context.show(app::list_kernels(request), kernels_text);
}

}  // namespace

void add_kernels(CLI::App& program, Context& context) {
  auto [verb, flags] = add_verb<KernelsFlags>(
      program, "kernels", "Tell which kernels a framework will run for a model");
  verb->add_option("FILE", flags->file, "A model: ONNX, TFLite or ncnn's .param")->required();
  verb->add_option("--gpu,--target", flags->gpu,
                   "A device that the rules tell from others, e.g. adreno640, mali-g76")
      ->type_name("NAME");
  verb->add_option("--rules", flags->rules,
                   fmt::format("How kernels come about: {}, or a file of rules, *.json",
                               fmt::join(app::list_kernel_rules(), ", ")))
      ->type_name("RULES")
      ->default_str("tflite-gpu");
  auto* device = verb->add_option("--device", flags->device, "The device to verify on");
  device->type_name("NAME");
  verb->add_flag("--verify", flags->verify,
                 "Run the model on a device that reports its kernels, and compare")
      ->needs(device);
  device->needs("--verify");
  add_open_dimension_flags(*verb, flags->open);
  verb->footer(
      "The exit status of --verify is 1 if other kernels were run than deduced.\n\n"
      "Example:\n  fleetfit kernels resnet18.onnx --gpu mali-g76\n"
      "  fleetfit kernels resnet18.onnx --verify --device local");
  context.on(verb, flags, run_kernels);
}

}  // namespace fleetfit::cli
