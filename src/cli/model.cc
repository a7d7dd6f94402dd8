#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/open_dimensions.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/models.h"

namespace fleetfit::cli {
namespace {

// --- inspect ---

std::string count_text(const std::optional<std::int64_t>& count) {
  return count ? with_prefix(*count) : "?";
}

std::string bytes_text(std::int64_t bytes) { return with_prefix(bytes, "B"); }

std::string shape_text(const app::TensorSummary& tensor) {
  if (!tensor.shape) return "?";
  std::vector<std::string> extents;
  for (std::size_t i = 0; i < tensor.shape->size(); ++i) {
    const bool open = i < tensor.symbols.size() && !tensor.symbols[i].empty();
    extents.push_back(open ? fmt::format("{}={}", tensor.symbols[i], (*tensor.shape)[i])
                           : std::to_string((*tensor.shape)[i]));
  }
  return fmt::format("{}", fmt::join(extents, " x "));
}

std::string tensors_text(const std::string& title, const std::vector<app::TensorSummary>& tensors) {
  std::string text;
  for (const auto& tensor : tensors)
    text += fmt::format("{:<8}{}  {}  {}\n", title, tensor.name, tensor.dtype, shape_text(tensor));
  return text;
}

/// How much each type of operator takes, the most expensive first.
std::string by_type_text(const app::ModelSummary& summary) {
  struct Sum {
    std::string type;
    int count = 0;
    std::int64_t flops = 0;
    std::int64_t params = 0;
    std::int64_t bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const auto& op : summary.ops) {
    auto& sum = sums[op.type];
    sum.type = op.type;
    ++sum.count;
    sum.flops += op.flops.value_or(0);
    sum.params += op.params.value_or(0);
    sum.bytes +=
        op.input_bytes.value_or(0) + op.output_bytes.value_or(0) + op.weight_bytes.value_or(0);
  }
  std::vector<Sum> sorted;
  for (const auto& [type, sum] : sums) sorted.push_back(sum);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Sum& a, const Sum& b) {
    return std::pair(a.flops, a.bytes) > std::pair(b.flops, b.bytes);
  });
  TextTable table("operator | count {} | FLOPs {} | params {} | bytes moved {}");
  for (const auto& s : sorted)
    table.add(s.type, s.count, count_text(s.flops), count_text(s.params), bytes_text(s.bytes));
  return table.text();
}

std::string operators_text(const app::ModelSummary& summary) {
  TextTable table("name | operator | output | FLOPs {} | params {}");
  for (const auto& op : summary.ops) {
    table.add(op.name, op.activation.empty() ? op.type : op.type + "+" + op.activation,
              op.output_shape ? fmt::format("{}", fmt::join(*op.output_shape, "x")) : "?",
              count_text(op.flops), count_text(op.params));
  }
  return table.text();
}

std::string summary_text(const app::ModelSummary& summary, bool all_operators) {
  std::string text = fmt::format("format  {}, {} operators\n", summary.format, summary.ops.size());
  text += tensors_text("input", summary.inputs) + tensors_text("output", summary.outputs);
  const auto& t = summary.totals;
  text += fmt::format(
      "total   {} FLOPs, {} parameters, {} of weights, {}{} of activations at the peak\n\n",
      count_text(t.flops), count_text(t.params), bytes_text(t.weight_bytes),
      t.peak_is_least ? "" : "at most ", bytes_text(t.peak_activation_bytes));
  text += all_operators ? operators_text(summary) : by_type_text(summary);
  for (const auto& a : summary.assumed) {
    text += fmt::format(
        "\nThe file leaves dimension {} of {} open; {} was assumed (change it with --dim {}=…).",
        a.dimension, a.input, a.extent, a.dimension);
  }
  if (!summary.assumed.empty()) text += "\n";
  if (!summary.unsupported.empty())
    text += "\nOperators that fleetfit cannot run, and that no total counts:\n";
  for (const auto& op : summary.unsupported)
    text += fmt::format("  {} ({}): {}\n", op.name, op.type, op.why);
  return text;
}

void add_inspect(CLI::App& model, Context& context) {
  struct Flags {
    std::string file;
    OpenDimensionFlags open;
    bool ops = false;
  };
  auto [verb, flags] =
      add_verb<Flags>(model, "inspect", "Say what is in a model file: operators, costs, memory");
  verb->add_option("FILE", flags->file, "A model: ONNX, TFLite or ncnn's .param")->required();
  verb->add_flag("--ops", flags->ops, "List every operator instead of sums by type");
  add_open_dimension_flags(*verb, flags->open);
  verb->footer(
      "Example:\n  fleetfit model inspect mobilenet_v2.onnx\n  fleetfit model inspect "
      "detector.onnx --dim height=320 --dim width=320 --json");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(const auto options, model_options(flags->open));
    FLEETFIT_ASSIGN(const auto summary, app::inspect_model(flags->file, options));
    return context.show(summary, summary_text(summary, flags->ops));
  });
}

// --- zoo ---

struct ZooFlags {
  std::string name;
  std::string output;
  bool all = false;
  app::ZooRequest request;
};

std::string zoo_text(const std::vector<app::ZooSummary>& networks) {
  TextTable table("name | family | input | FLOPs {} | params {}");
  for (const auto& n : networks)
    table.add(n.name, n.family, fmt::format("{}", fmt::join(n.input, "x")), count_text(n.flops),
              count_text(n.params));
  return table.text();
}

Result<Verdict> list_networks(Context& context, const ZooFlags& flags) {
  if (flags.name.empty()) return context.show(app::list_zoo(context.threads()), zoo_text);
  FLEETFIT_ASSIGN(const auto network, app::show_zoo_network(flags.name, flags.request));
  return context.show(std::vector{network}, zoo_text);
}

Result<Verdict> write_whole_zoo(Context& context, const ZooFlags& flags) {
  FLEETFIT_ASSIGN(const auto written,
                  app::write_zoo(flags.output, flags.request, context.progress()));
  return context.show(written, fmt::format("{}: {} networks\n", flags.output, written.size()));
}

Result<Verdict> write_one_network(Context& context, const ZooFlags& flags) {
  FLEETFIT_ASSIGN(const auto written,
                  app::write_zoo_network(flags.name, flags.output, flags.request));
  return context.show(written, fmt::format("{}: {}\n", written.file,
                                           bytes_text(static_cast<std::int64_t>(written.bytes))));
}

Result<Verdict> run_zoo(Context& context, ZooFlags& flags) {
  flags.request.seed = context.flags.seed;
  if (flags.all && !flags.name.empty())
    return fail(ErrorCode::invalid_input, "zoo takes a NAME or --all, not both");
  if (flags.output.empty()) {
    if (flags.all) return fail(ErrorCode::invalid_input, "zoo --all needs a folder: -o DIR");
    return list_networks(context, flags);
  }
  if (!flags.all && flags.name.empty())
    return fail(ErrorCode::invalid_input, "zoo -o needs a NAME or --all");
  return flags.all ? write_whole_zoo(context, flags) : write_one_network(context, flags);
}

void add_zoo(CLI::App& model, Context& context) {
  auto [verb, flags] = add_verb<ZooFlags>(
      model, "zoo", "List known networks, or write them as ONNX with random weights");
  verb->add_option("NAME", flags->name,
                   "The network to show, or to write with -o; without: the list");
  verb->add_option("-o,--output", flags->output, "File to write, or folder with --all");
  verb->add_flag("--all", flags->all, "Write every network into the folder");
  verb->add_option("--width", flags->request.width, "Multiplies the number of channels");
  verb->add_option("--classes", flags->request.classes, "Number of classes");
  verb->add_option("--image", flags->request.image, "Height and width of the input");
  verb->add_option("--channels", flags->request.channels, "Channels of the input");
  verb->footer(
      "Example:\n  fleetfit model zoo\n  fleetfit model zoo mobilenet_v2 -o small.onnx --width 0.5 "
      "--classes 10");
  context.on(verb, flags, run_zoo);
}

}  // namespace

void add_model(CLI::App& program, Context& context) {
  auto& model = add_group(program, context, "model",
                          "Look into model files, convert and run them, make known networks",
                          "Example:\n  fleetfit model inspect mobilenet_v2.onnx");
  add_inspect(model, context);
  add_model_convert(model, context);
  add_model_run(model, context);
  add_model_check(model, context);
  add_zoo(model, context);
}

}  // namespace fleetfit::cli
