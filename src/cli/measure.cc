#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/open_dimensions.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/measuring.h"
#include "fleetfit/study/tuning.h"

namespace fleetfit::cli {
namespace {

using app::MeasuredDesign;
using app::MeasuredModel;

struct MeasureFlags {
  std::vector<std::string> files;
  std::vector<std::string> devices;
  OpenDimensionFlags open;
  std::string space;
  std::size_t samples = 0;
  std::size_t first = 0;
  bool retry_unstable = false;
  std::optional<int> sessions = std::nullopt;
  bool ops = false;
  double max_time_s = 30;
  double target_percent = 2;
  std::string power_table;
  std::string soc;
  int cluster = 0;
  std::string executor = "local";
  std::size_t jobs = 0;
  std::size_t designs_of_each = 8;
  std::string resources;
  std::string folder = "fleetfit.jobs";
};

std::string file_name(const MeasuredModel& measured) {
  return std::filesystem::path(measured.model).stem().string();
}

std::string median_text(const MeasuredModel& measured) {
  const auto& latency = measured.measurement.latency;
  if (!latency) return "-";
  const double half = measure::relative_half_width(latency->ci95_ms, latency->median_ms);
  return fmt::format("{:.4g} ± {:.1f} %", latency->median_ms, 100 * half);
}

std::string energy_text(const MeasuredModel& measured) {
  const auto& energy = measured.measurement.energy;
  return energy ? fmt::format("{:.3g} mJ {}", energy->mj, to_string(energy->source)) : "-";
}

std::string ratio_text(const MeasuredModel& measured) {
  const auto& against = measured.against_first;
  if (!against) return "1";
  if (against->rounds == 0) return "-";
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", against->ratio, against->ci95.low,
                     against->ci95.high);
}

std::string table_text(const std::vector<MeasuredModel>& results) {
  const bool several =
      std::ranges::any_of(results, [](const auto& r) { return r.against_first.has_value(); });
  TextTable table(
      "model | device | status | median ms {} | p90 ms {} | runs {} | memory {} | energy {}");
  if (several) table.add_column("time against the first");
  for (const auto& result : results) {
    const auto& m = result.measurement;
    table.add(
        file_name(result), m.device, to_string(m.status), median_text(result),
        m.latency ? fmt::format("{:.4g}", m.latency->p90_ms) : "-", m.runs,
        m.peak_memory_bytes ? with_prefix(static_cast<double>(*m.peak_memory_bytes), "B") : "-",
        energy_text(result));
    if (several) table.append(ratio_text(result));
  }
  return table.text();
}

std::string operators_text(const MeasuredModel& measured) {
  constexpr std::size_t kShown = 10;
  auto operators = measured.measurement.operators;
  if (operators.empty()) return "";
  std::ranges::stable_sort(operators, std::ranges::greater(), &measure::OperatorTime::ms);
  const double median = measured.measurement.latency->median_ms;
  TextTable table("operator | type | kernel | ms {:.4f} | share {:.1f} %");
  for (std::size_t i = 0; i < std::min(kShown, operators.size()); ++i) {
    const auto& op = operators[i];
    table.add(op.name, op.type, op.kernel, op.ms, 100 * op.ms / median);
  }
  return fmt::format(
      "\n{} on {}, the most expensive of {} operators; {:.4f} ms between operators\n{}",
      file_name(measured), measured.measurement.device, operators.size(),
      measured.measurement.overhead_ms.value_or(0), table.text());
}

std::string remarks_text(const MeasuredModel& measured, const GlobalFlags& flags) {
  auto remarks = measure::circumstances_of(measured.measurement).notes;
  if (!measured.measurement.reason.empty())
    remarks.insert(remarks.begin(), measured.measurement.reason);
  if (flags.verbose && !measured.energy_meter.empty())
    remarks.push_back("energy: " + measured.energy_meter);
  std::string text;
  for (const auto& remark : remarks)
    text += fmt::format("{} on {}: {}\n", file_name(measured), measured.measurement.device, remark);
  return text;
}

std::string results_text(const std::vector<MeasuredModel>& results, const GlobalFlags& flags) {
  std::string text = table_text(results);
  for (const auto& result : results) text += operators_text(result);
  std::string remarks;
  for (const auto& result : results) remarks += remarks_text(result, flags);
  return remarks.empty() ? text : text + "\n" + remarks;
}

bool all_good(const std::vector<MeasuredModel>& results) {
  return std::ranges::all_of(results, [](const MeasuredModel& r) {
    return r.measurement.status == measure::MeasurementStatus::ok;
  });
}

Result<std::optional<measure::PowerModel>> power_model(const MeasureFlags& flags) {
  if (flags.power_table.empty()) return std::nullopt;
  FLEETFIT_ASSIGN(auto table, measure::read_power_table(flags.power_table, {.soc = flags.soc}));
  const auto known = table.power_mw(flags.cluster, 0);  // whether it has the cluster
  if (!known) return core::within("--cluster", known.error());
  return measure::PowerModel{.table = std::move(table), .cluster = flags.cluster};
}

measure::Protocol protocol_of(const MeasureFlags& flags) {
  auto protocol = measure::protocol_within(flags.max_time_s);
  protocol.target = flags.target_percent / 100;
  protocol.operators = flags.ops;
  return protocol;
}

Result<app::MeasureRequest> request_of(const Context& context, const MeasureFlags& flags) {
  FLEETFIT_ASSIGN(auto options, model_options(flags.open));
  FLEETFIT_ASSIGN(auto power, power_model(flags));
  app::MeasureRequest request{.models = {flags.files.begin(), flags.files.end()},
                              .options = std::move(options),
                              .protocol = protocol_of(flags),
                              .threads = context.threads(),
                              .power = std::move(power)};
  if (!flags.devices.empty()) request.devices = flags.devices;
  return request;
}

Result<app::DesignsRequest> designs_of(const Context& context, const MeasureFlags& flags) {
  FLEETFIT_ASSIGN(auto power, power_model(flags));
  app::DesignsRequest request{.space = flags.space,
                              .samples = flags.samples,
                              .first = flags.first,
                              .seed = context.flags.seed,
                              .protocol = protocol_of(flags),
                              .threads = context.threads(),
                              .power = std::move(power),
                              .retry_unstable = flags.retry_unstable,
                              .sessions = flags.sessions};
  if (!flags.devices.empty()) request.devices = flags.devices;
  return request;
}

Result<int> measure_files(Context& context, const MeasureFlags& flags,
                          const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto request, request_of(context, flags));
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  FLEETFIT_ASSIGN(const auto results,
                  app::measure_models(workplace, request, context.progress(), stop));
  context.show(results, results_text(results, context.flags));
  const bool complete = results.size() == request.models.size() * request.devices.size();
  return complete && all_good(results) ? 0 : 1;
}

struct StatusCounts {
  std::size_t known = 0;
  std::size_t ok = 0;
  std::size_t unstable = 0;
  std::size_t failed = 0;
  std::vector<double> medians = {};
  std::string last_failure = {};
};

StatusCounts count_statuses(const std::vector<MeasuredDesign>& results, const std::string& device) {
  StatusCounts counts;
  for (const auto& [number, known, record] : results) {
    if (record.device != device) continue;
    if (known) ++counts.known;
    if (record.status == store::MeasurementStatus::ok) ++counts.ok;
    if (record.status == store::MeasurementStatus::unstable) ++counts.unstable;
    if (record.status == store::MeasurementStatus::failed) {
      ++counts.failed;
      counts.last_failure = fmt::format("design {} on {}: {}", number, device, record.reason);
    }
    if (record.latency) counts.medians.push_back(record.latency->median_ms);
  }
  std::ranges::sort(counts.medians);
  return counts;
}

std::string designs_text(const std::vector<MeasuredDesign>& results,
                         const std::vector<std::string>& devices) {
  TextTable table(
      "device | measured before {} | ok {} | unstable {} | failed {} | fastest ms {} | middle ms "
      "{} | slowest ms {}");
  std::string failures;
  for (const auto& device : devices) {
    const auto counts = count_statuses(results, device);
    const auto& ms = counts.medians;
    const auto cell = [&](std::size_t i) {
      return ms.empty() ? "-" : fmt::format("{:.4g}", ms[i]);
    };
    table.add(device, counts.known, counts.ok, counts.unstable, counts.failed, cell(0),
              cell(ms.size() / 2), cell(ms.empty() ? 0 : ms.size() - 1));
    if (!counts.last_failure.empty()) failures += counts.last_failure + "\n";
  }
  return failures.empty() ? table.text() : table.text() + "\n" + failures;
}

// What a job of the campaign is asked to do.
Result<std::vector<std::string>> job_command(const Context& context, const MeasureFlags& flags) {
  FLEETFIT_ASSIGN(auto self, own_program());
  std::vector<std::string> command{std::move(self),
                                   "--quiet",
                                   "--store",
                                   store_for_others(context),
                                   "--seed",
                                   std::to_string(context.flags.seed),
                                   "measure",
                                   "--space",
                                   flags.space,
                                   "--max-time",
                                   fmt::format("{}", flags.max_time_s),
                                   "--target-ci",
                                   fmt::format("{}", flags.target_percent)};
  for (const auto& device : flags.devices) command.insert(command.end(), {"--device", device});
  if (flags.ops) command.emplace_back("--ops");
  if (flags.retry_unstable) command.emplace_back("--retry-unstable");
  if (flags.sessions)
    command.insert(command.end(), {"--sessions", std::to_string(*flags.sessions)});
  return command;
}

Result<std::vector<MeasuredDesign>> measure_on_cluster(Context& context, const MeasureFlags& flags,
                                                       const app::DesignsRequest& request,
                                                       app::Workplace& workplace,
                                                       const std::stop_token& stop) {
  if (context.flags.store == "memory:")
    return fail(ErrorCode::invalid_input,
                "--store memory: is seen by one process alone; jobs need one that they can open");
  if (!flags.power_table.empty())
    return fail(ErrorCode::invalid_input, "--power-table does not go with --executor slurm");
  FLEETFIT_ASSIGN(
      const auto resources,
      tune::parse_resources(flags.resources.empty() ? "{}" : flags.resources, "--resources"));
  FLEETFIT_ASSIGN(auto command, job_command(context, flags));
  const auto executor = study::make_slurm_executor(
      {.work = fmt::format("measure {} {}", flags.space, context.flags.seed),
       .folder = std::filesystem::absolute(flags.folder),
       .resources = resources,
       .most_at_once = flags.jobs},
      workplace.clock, context.progress());
  return app::measure_designs_elsewhere(
      workplace, request, {.command = std::move(command), .designs_of_each = flags.designs_of_each},
      *executor, context.progress(), stop);
}

Result<int> measure_space(Context& context, const MeasureFlags& flags,
                          const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto request, designs_of(context, flags));
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  FLEETFIT_ASSIGN(const auto results,
                  flags.executor == "slurm"
                      ? measure_on_cluster(context, flags, request, workplace, stop)
                      : app::measure_designs(workplace, request, context.progress(), stop));
  context.show(results, designs_text(results, request.devices));
  const bool complete = results.size() == request.samples * request.devices.size();
  const bool good = std::ranges::all_of(results, [](const MeasuredDesign& r) {
    return r.record.status == store::MeasurementStatus::ok;
  });
  return complete && good ? 0 : 1;
}

Result<int> run_measure(Context& context, const MeasureFlags& flags, const std::stop_token& stop) {
  if (flags.space.empty()) {
    if (flags.executor != "local")
      return fail(ErrorCode::invalid_input, "--executor slurm goes with a --space");
    if (flags.samples > 0 || flags.first > 0 || flags.retry_unstable || flags.sessions) {
      return fail(ErrorCode::invalid_input,
                  "--samples, --first, --retry-unstable and --sessions go with a --space");
    }
    if (flags.files.empty())
      return fail(ErrorCode::invalid_input, "measure needs a FILE or a --space");
    return measure_files(context, flags, stop);
  }
  if (!flags.files.empty() || !flags.open.dimensions.empty() || flags.open.batch != 1) {
    return fail(ErrorCode::invalid_input,
                "--space takes its models from the space: no FILE, --dim or --batch with it");
  }
  if (flags.samples == 0) return fail(ErrorCode::invalid_input, "--space needs --samples");
  return measure_space(context, flags, stop);
}

void add_export(CLI::App& measure, Context& context, const MeasureFlags& measure_flags) {
  struct Flags {
    std::string output;
    std::string space;
    bool ops = false;
  };
  auto [verb, flags] = add_verb<Flags>(
      measure, "export",
      "Write what was measured as CSV: a row for each model, a column for each device");
  verb->add_option("-o,--output", flags->output, "The CSV file to write")->required();
  auto* ops = verb->add_flag("--ops", flags->ops, "A row for each operator instead");
  verb->add_option("--space", flags->space, "Only the designs of this space, with its key columns")
      ->excludes(ops);
  verb->footer(
      "A cell is the median in ms of the newest good measurement, empty if there is none.\n\n"
      "Example:\n  fleetfit measure export -o latency.csv\n"
      "  fleetfit measure export --space icpe -o icpe.csv");
  context.on(verb, [flags, &context, &measure_flags]() -> Result<int> {
    if (!measure_flags.files.empty()) {
      return fail(ErrorCode::invalid_input,
                  "measure export takes no FILE; a file of that name is ./export");
    }
    if (!measure_flags.space.empty())
      return fail(ErrorCode::invalid_input, "--space stands behind measure export");
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    FLEETFIT_ASSIGN(const auto summary,
                    !flags->space.empty()
                        ? app::export_designs(workplace, flags->space, flags->output)
                    : flags->ops ? app::export_operators(workplace, flags->output)
                                 : app::export_measurements(workplace, flags->output));
    return context.show(summary, fmt::format("{}: {} rows, devices {}\n", summary.output,
                                             summary.rows, fmt::join(summary.devices, ", ")));
  });
}

void add_cluster_flags(CLI::App& verb, MeasureFlags& flags) {
  verb.add_option("--executor", flags.executor,
                  "Where the designs of a --space are measured: here, or by jobs of a cluster "
                  "(docs/slurm.md)")
      ->check(CLI::IsMember({"local", "slurm"}));
  verb.add_option("--jobs", flags.jobs, "So many jobs at a time; 0: as the cluster likes")
      ->check(CLI::Range(0, 100'000));
  verb.add_option("--designs-per-job", flags.designs_of_each, "Designs that one job measures")
      ->check(CLI::Range(1, 1'000'000));
  verb.add_option("--resources", flags.resources,
                  "What a job needs, as in study files: '{cores: 2, partition: edge}'");
  verb.add_option("--folder", flags.folder, "For the logs of jobs; all nodes can write it");
}

}  // namespace

void add_measure(CLI::App& program, Context& context) {
  auto [verb, flags] =
      add_verb<MeasureFlags>(program, "measure", "Measure how long models take on devices");
  verb->add_option("FILE", flags->files, "Models: ONNX, TFLite or ncnn's .param");
  verb->add_option("--space", flags->space,
                   "Instead of files: random designs of this space, those of --seed");
  verb->add_option("--samples", flags->samples, "How many designs of the space")
      ->check(CLI::Range(1, 1'000'000));
  verb->add_option("--first", flags->first, "Number of the first design, from 0")
      ->check(CLI::Range(0, 1'000'000));
  verb->add_flag("--retry-unstable", flags->retry_unstable,
                 "Measure designs again whose measurement did not settle");
  verb->add_option("--sessions", flags->sessions,
                   "How often each design is measured, all once and then all again, within "
                   "--max-time together; the fastest counts. Default: 3 to 8, until two agree")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--device", flags->devices,
                   "A device to measure on; given several times, they are measured in turns")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->default_str("local");
  verb->add_flag("--ops", flags->ops, "Also the time of each operator");
  verb->add_option("--max-time", flags->max_time_s, "Most seconds for each model on each device")
      ->check(CLI::Range(0.01, 86400.0));
  verb->add_option(
          "--target-ci", flags->target_percent,
          "Half width of the median's 95 % interval that the runs are to reach, in percent")
      ->check(CLI::Range(0.01, 100.0));
  auto* table = verb->add_option("--power-table", flags->power_table,
                                 "Power of a CPU's cores by cluster and frequency (CSV), where no "
                                 "sensor tells the energy")
                    ->type_name("FILE");
  verb->add_option("--soc", flags->soc, "The chip in the power table, if it holds several")
      ->needs(table);
  verb->add_option("--cluster", flags->cluster, "The cluster of cores in the power table")
      ->needs(table)
      ->capture_default_str();
  add_open_dimension_flags(*verb, flags->open);
  add_cluster_flags(*verb, *flags);
  verb->require_subcommand(0, 1);
  verb->footer(
      "Results are kept in the store. The exit status is 1 if one of them is unstable or "
      "failed. Designs of a space that were measured before are not measured again.\n\n"
      "Example:\n  fleetfit measure mobilenet_v2.onnx --ops\n"
      "  fleetfit measure a.onnx b.tflite --device local --device ort --max-time 10\n"
      "  fleetfit measure --space icpe --samples 30 --ops --max-time 2");
  context.on(verb, flags, run_measure);
  add_export(*verb, context, *flags);
}

}  // namespace fleetfit::cli
