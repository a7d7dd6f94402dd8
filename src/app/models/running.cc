#include "fleetfit/app/running.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "app/devices/kernel_choices.h"
#include "app/devices/opened_device.h"
#include "app/models/model_files.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/npy.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::app {
namespace {

using graph::Graph;
using graph::Value;
using measure::NamedValue;

// --- Inputs ---

std::string type_text(graph::DType dtype, const graph::Shape& shape) {
  return fmt::format("{} {}", to_string(dtype), graph::to_string(shape));
}

Status check_fits_input(const graph::Tensor& input, const Value& value, const InputFile& given) {
  if (value.dtype == input.dtype && value.shape == input.shape) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("input {}: {} holds {}, the model takes {}", input.name,
                          given.file.string(), type_text(value.dtype, value.shape),
                          type_text(input.dtype, input.shape.value_or(graph::Shape{}))));
}

Status check_names(const Graph& graph, const std::vector<InputFile>& given) {
  std::vector<std::string> names;
  for (const auto id : graph.inputs) names.push_back(graph.tensor(id).name);
  std::set<std::string_view> seen;
  for (const auto& input : given) {
    if (std::ranges::find(names, input.name) == names.end()) {
      return fail(ErrorCode::invalid_input, fmt::format("the model has no input {}; it has {}",
                                                        input.name, fmt::join(names, ", ")));
    }
    if (!seen.insert(input.name).second) {
      return fail(ErrorCode::invalid_input, fmt::format("input {} is given twice", input.name));
    }
  }
  return {};
}

std::vector<NamedValue> random_named_inputs(const Graph& graph, std::uint64_t seed) {
  auto values = graph::random_inputs(graph, seed);
  std::vector<NamedValue> inputs;
  for (std::size_t i = 0; i < values.size(); ++i)
    inputs.push_back({graph.tensor(graph.inputs[i]).name, std::move(values[i])});
  return inputs;
}

Status check_sizes_known(const Graph& graph) {
  for (const auto id : graph.inputs) {
    if (graph.tensor(id).shape) continue;
    return fail(ErrorCode::unsupported,
                fmt::format("input {} has no shape in the file", graph.tensor(id).name));
  }
  return {};
}

Result<std::vector<NamedValue>> read_inputs(const Graph& graph, const RunRequest& request) {
  FLEETFIT_TRY(check_names(graph, request.inputs));
  FLEETFIT_TRY(check_sizes_known(graph));
  auto inputs = random_named_inputs(graph, request.seed);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& tensor = graph.tensor(graph.inputs[i]);
    const auto given = std::ranges::find(request.inputs, tensor.name, &InputFile::name);
    if (given == request.inputs.end()) {
      if (request.missing == MissingInputs::random) continue;
      return fail(ErrorCode::invalid_input,
                  fmt::format("input {} is missing: give --input {}=FILE.npy or --random-inputs",
                              tensor.name, tensor.name));
    }
    auto value = graph::read_npy(given->file);
    if (!value) return core::within("input " + tensor.name, std::move(value.error()));
    FLEETFIT_TRY(check_fits_input(tensor, *value, *given));
    inputs[i].value = *std::move(value);
  }
  return inputs;
}

// --- Outputs ---

/// A file name of its own for each output, whatever its name holds.
class SafeNames {
 public:
  std::string next(const std::string& name) {
    std::string safe;
    for (const char c : name) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
      safe.push_back(plain ? c : '_');
    }
    constexpr std::size_t kMost = 100;
    safe = safe.substr(0, kMost);
    if (safe.empty() || safe.front() == '.') safe.insert(0, "output");
    std::string file = safe;
    for (int i = 2; !used_.insert(file).second; ++i) file = fmt::format("{}_{}", safe, i);
    return file + ".npy";
  }

 private:
  std::set<std::string> used_;
};

Result<std::vector<double>> numbers_of(const NamedValue& output) {
  Graph holder;
  const auto id = holder.add_tensor({.name = output.name,
                                     .dtype = output.value.dtype,
                                     .shape = output.value.shape,
                                     .data = output.value.data});
  auto numbers = graph::constant_numbers(holder, id);
  if (numbers) return *std::move(numbers);
  return fail(ErrorCode::unsupported, fmt::format("output {}: values of type {} cannot be compared",
                                                  output.name, to_string(output.value.dtype)));
}

OddValues odd_values(std::span<const double> numbers) {
  return {.nan = std::ranges::count_if(numbers, [](double v) { return std::isnan(v); }),
          .infinite = std::ranges::count_if(numbers, [](double v) { return std::isinf(v); })};
}

Result<std::vector<WrittenTensor>> write_outputs(const std::vector<NamedValue>& outputs,
                                                 const std::filesystem::path& folder) {
  FLEETFIT_TRY(core::create_folder(folder));
  SafeNames names;
  std::vector<WrittenTensor> written;
  for (const auto& [name, value] : outputs) {
    const auto file = folder / names.next(name);
    if (auto ok = graph::write_npy(file, value); !ok)
      return core::within("output " + name, ok.error());
    const auto numbers = numbers_of({name, value});
    written.push_back({name, file.string(), std::string(to_string(value.dtype)), value.shape,
                       numbers ? odd_values(*numbers) : OddValues{}});
  }
  return written;
}

// --- Running ---

Result<std::vector<NamedValue>> compute_on(Workplace& workplace, const OpenedDevice& device,
                                           const std::filesystem::path& file,
                                           std::span<const NamedValue> inputs) {
  auto load = load_options(device.device);
  FLEETFIT_ASSIGN(load.known_choices, KernelChoices(workplace).known(device.device));
  FLEETFIT_TRY(device.runtime().load(file, load));
  return device.runtime().compute(inputs);
}

// --- Comparing ---

OutputDifference difference_of(std::string name, const std::vector<double>& ours,
                               const std::vector<double>& theirs) {
  OutputDifference difference{
      .name = std::move(name), .engine_odd = odd_values(ours), .other_odd = odd_values(theirs)};
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    // Equal infinities are equal; anything else that is not finite stays so in the difference.
    const double apart = ours[i] == theirs[i] ? 0 : std::abs(ours[i] - theirs[i]);
    if (std::isnan(apart) || apart > difference.max_abs_diff) difference.max_abs_diff = apart;
    if (std::isnan(difference.max_abs_diff)) break;
    if (std::isfinite(theirs[i])) largest = std::max(largest, std::abs(theirs[i]));
  }
  const double apart = difference.max_abs_diff;
  difference.max_rel_diff = apart == 0     ? 0
                            : largest == 0 ? std::numeric_limits<double>::infinity()
                                           : apart / largest;
  if (std::isnan(apart)) difference.max_rel_diff = apart;
  return difference;
}

/// The output of that name, or the one at the same position if no name is the same.
const NamedValue& counterpart(const std::vector<NamedValue>& outputs, const std::string& name,
                              std::size_t position) {
  const auto found = std::ranges::find(outputs, name, &NamedValue::name);
  return found == outputs.end() ? outputs[position] : *found;
}

Result<std::vector<OutputDifference>> compare(const std::vector<NamedValue>& ours,
                                              const std::vector<NamedValue>& theirs) {
  if (ours.size() != theirs.size()) {
    return fail(ErrorCode::device_failed,
                fmt::format("the engine gives {} outputs, the other runtime {}", ours.size(),
                            theirs.size()));
  }
  std::vector<OutputDifference> differences;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto& other = counterpart(theirs, ours[i].name, i);
    if (ours[i].value.shape != other.value.shape) {
      return fail(
          ErrorCode::device_failed,
          fmt::format("output {}: the engine gives {}, the other runtime {}", ours[i].name,
                      graph::to_string(ours[i].value.shape), graph::to_string(other.value.shape)));
    }
    FLEETFIT_ASSIGN(const auto mine, numbers_of(ours[i]));
    FLEETFIT_ASSIGN(const auto others, numbers_of(other));
    differences.push_back(difference_of(ours[i].name, mine, others));
  }
  return differences;
}

/// The device of that name, or one with that runtime.
Result<OpenedDevice> open_counterpart(Workplace& workplace, const CheckRequest& request) {
  measure::Device device{.name = "check", .runtime = request.against};
  if (check(device)) return start_device(std::move(device), workplace.programs);
  auto named = open_device(workplace, request.against);
  if (named || named.error().code != ErrorCode::not_found) return named;
  return fail(ErrorCode::not_found,
              fmt::format("{} is neither a runtime (auto, onednn, xnnpack, reference, onnxruntime, "
                          "exec:COMMAND) nor a device",
                          request.against));
}

Result<std::vector<NamedValue>> outputs_on(Workplace& workplace, const OpenedDevice& device,
                                           ModelFiles& files, std::uint64_t seed) {
  FLEETFIT_ASSIGN(const auto file, files.for_device(device.device));
  const auto inputs = random_named_inputs(files.graph(), seed);
  return compute_on(workplace, device, file.path, inputs);
}

}  // namespace

Result<RunSummary> run_model(Workplace& workplace, const RunRequest& request) {
  FLEETFIT_ASSIGN(auto files, ModelFiles::open(request.model, request.options, request.threads));
  FLEETFIT_ASSIGN(const auto inputs,
                  core::within(request.model.string(), read_inputs(files.graph(), request)));
  FLEETFIT_ASSIGN(const auto device, open_device(workplace, request.device));
  FLEETFIT_ASSIGN(const auto file,
                  core::within(request.model.string(), files.for_device(device.device)));
  FLEETFIT_ASSIGN(const auto outputs, compute_on(workplace, device, file.path, inputs));
  FLEETFIT_ASSIGN(auto written, write_outputs(outputs, request.folder));
  RunSummary summary{.outputs = std::move(written)};
  if (!file.note.empty()) summary.notes.push_back(file.note);
  return summary;
}

Result<CheckReport> check_model(Workplace& workplace, const CheckRequest& request) {
  FLEETFIT_ASSIGN(const auto precision, measure::parse_precision(request.precision));
  FLEETFIT_ASSIGN(auto files, ModelFiles::open(request.model, request.options, request.threads));
  if (auto ok = check_sizes_known(files.graph()); !ok) {
    return core::within(request.model.string(), ok.error());
  }
  FLEETFIT_ASSIGN(auto other, open_counterpart(workplace, request));
  FLEETFIT_ASSIGN(auto engine, start_device({.name = "engine", .threads = other.device.threads},
                                            workplace.programs));
  // Both run the same network: what is asked for, or what the device computes with.
  if (precision == measure::Precision::int8) other.device.precision = precision;
  engine.device.precision = other.device.precision;

  FLEETFIT_ASSIGN(const auto ours, outputs_on(workplace, engine, files, request.seed));
  FLEETFIT_ASSIGN(const auto theirs, outputs_on(workplace, other, files, request.seed));
  FLEETFIT_ASSIGN(auto differences, core::within(request.model.string(), compare(ours, theirs)));

  CheckReport report{.outputs = std::move(differences)};
  const bool quantized =
      other.device.precision == measure::Precision::int8 || graph::is_quantized(files.graph());
  report.bound = quantized ? kQuantizedBound : kFloatBound;
  report.pass = std::ranges::all_of(report.outputs, [&](const OutputDifference& d) {
    return d.max_rel_diff < report.bound || d.max_abs_diff < kFloatNoise;
  });
  return report;
}

std::string to_string(const OddValues& odd) {
  const auto infinite = odd.infinite > 0 ? fmt::format("{} infinite", odd.infinite) : "";
  if (odd.nan == 0) return infinite;
  return fmt::format("{} NaN{}{}", odd.nan, infinite.empty() ? "" : " and ", infinite);
}

FLEETFIT_REPORT(OddValues, nan, infinite)
FLEETFIT_REPORT(WrittenTensor, name, file, dtype, shape, odd)
FLEETFIT_REPORT(RunSummary, outputs, notes)
FLEETFIT_REPORT(OutputDifference, name, max_abs_diff, max_rel_diff, engine_odd, other_odd)
FLEETFIT_REPORT(CheckReport, outputs, pass, bound)

}  // namespace fleetfit::app
