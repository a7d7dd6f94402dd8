#include "fleetfit/fit/fleet_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "fleetfit/core/file.h"
#include "fleetfit/yaml/fields.h"

namespace fleetfit::fit {
namespace {

using yaml::first_error;
using yaml::read_field;
using yaml::YamlView;

constexpr std::size_t kLongestName = 100;
constexpr std::size_t kMostDevices = 10'000;
constexpr std::int64_t kMostMeasurements = 400;

Result<std::string> read_text(const YamlView& view) {
  auto text = view.as_text();
  if (text && text->empty()) return view.error("is empty");
  return text;
}

/// Names are names of folders, too.
Result<std::string> read_name(const YamlView& view) {
  auto text = read_text(view);
  if (!text) return text;
  if (text->size() > kLongestName)
    return view.error(fmt::format("is longer than {} bytes", kLongestName));
  const bool fits = yaml::one_line(*text, text->size()) == *text &&
                    text->find_first_of("/\\") == std::string::npos && !text->starts_with('.');
  if (!fits) return view.error("has to be one line without a slash, and not begin with a dot");
  return text;
}

/// "12 ms", "12" or "50%"; `unit` may stand behind an amount.
Result<std::optional<WrittenBudget>> read_budget(const YamlView& view, std::string_view unit) {
  const auto wanted = fmt::format("an amount such as 12 {} or a share such as 50%", unit);
  const auto text = view.as_text();
  if (!text) return view.expected(wanted);
  double value = 0;
  const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || !std::isfinite(value)) return view.expected(wanted);
  std::string_view after(rest, static_cast<std::size_t>(text->data() + text->size() - rest));
  while (after.starts_with(' ')) after.remove_prefix(1);
  if (!after.empty() && after != "%" && after != unit) return view.expected(wanted);
  if (!(value > 0)) return view.error(fmt::format("{} is not above 0", *text));
  const bool is_share = after == "%";
  return WrittenBudget{.value = is_share ? value / 100 : value, .is_share = is_share};
}

Result<std::string> read_statistic(const YamlView& view) {
  return yaml::read_word<std::string>(
      view, {{"median", "median"}, {"mean", "mean"}, {"p90", "p90"}, {"p99", "p99"}});
}

Result<WrittenBudgets> read_budgets(const YamlView& view) {
  WrittenBudgets budgets{.line = view.node().line};
  const auto of = [](std::string_view unit) {
    return [unit](const YamlView& field) { return read_budget(field, unit); };
  };
  Status good = first_error({view.allow_only({"latency", "energy", "memory", "of"}),
                             read_field(view, "latency", budgets.latency, of("ms")),
                             read_field(view, "energy", budgets.energy, of("mJ")),
                             read_field(view, "memory", budgets.memory, of("MB")),
                             read_field(view, "of", budgets.statistic, read_statistic)});
  FLEETFIT_TRY(good);
  if (!budgets.latency) return view.error("latency is missing");
  return budgets;
}

Result<int> read_small_count(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto number, view.as_integer({.min = 1, .max = 1024}));
  return static_cast<int>(number);
}

Result<std::optional<int>> read_quota(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto number, view.as_integer({.min = 1, .max = 100'000}));
  return std::optional(static_cast<int>(number));
}

Result<std::string> read_precision(const YamlView& view) {
  return yaml::read_word<std::string>(view, {{"fp32", "fp32"}, {"int8", "int8"}});
}

Status read_of_model(const YamlView& view, FleetDevice& device) {
  Status good = first_error(
      {view.allow_only({"name", "budget", "optional", "device", "runtime", "threads", "cores",
                        "precision", "cpu_quota", "memory_limit", "latency", "agent"}),
       read_field(view, "device", device.device, read_text),
       read_field(view, "agent", device.agent, read_text),
       read_field(view, "runtime", device.runtime, read_text),
       read_field(view, "threads", device.threads, read_small_count),
       read_field(view, "cores", device.cores, read_text),
       read_field(view, "precision", device.precision, read_precision),
       read_field(view, "cpu_quota", device.cpu_quota_percent, read_quota),
       read_field(view, "memory_limit", device.memory_limit, read_text),
       read_field(view, "latency", device.latency, read_text)});
  if (!good) return good;
  const FleetDevice plain;
  const bool described = device.runtime != plain.runtime || device.threads != plain.threads ||
                         !device.cores.empty() || device.precision != plain.precision ||
                         device.cpu_quota_percent || !device.memory_limit.empty();
  if (!device.device.empty() && described)
    return view.error("a device that is named by device: has its settings already");
  if (!device.latency.empty() && (described || !device.device.empty()))
    return view.error("a device is either run here or known by latency: alone");
  if (!device.agent.empty() && !(device.device.empty() && device.latency.empty()))
    return view.error("agent: stands alone, without device: and latency:");
  return {};
}

Status read_of_space(const YamlView& view, FleetDevice& device) {
  Status good =
      first_error({view.allow_only({"name", "budget", "measure", "references", "latency"}),
                   read_field(view, "measure", device.measure, read_text),
                   read_field(view, "references", device.references, yaml::read_texts),
                   read_field(view, "latency", device.latency, read_text)});
  if (!good) return good;
  const bool measured = !device.measure.empty() || !device.references.empty();
  if (!device.latency.empty() && measured)
    return view.error("a device is either measured or known by latency: alone");
  if (!device.measure.empty() && !device.measure.starts_with("table:") && !device.is_measured())
    return (*view.at("measure")).expected("table:FILE.csv#COLUMN, device:NAME or agent:NAME");
  if (device.budgets.statistic != "median" && !device.is_measured())
    return view.error(fmt::format("budget.of: a table has one number for a design, not a {}",
                                  device.budgets.statistic));
  return {};
}

Result<FleetDevice> read_device(const YamlView& view, bool is_of_space) {
  FleetDevice device{.line = view.node().line};
  Status good = first_error({yaml::require(view, {"name", "budget"}),
                             read_field(view, "name", device.name, read_name),
                             read_field(view, "budget", device.budgets, read_budgets),
                             read_field(view, "optional", device.optional, yaml::read_boolean)});
  FLEETFIT_TRY(good);
  const Status rest = is_of_space ? read_of_space(view, device) : read_of_model(view, device);
  FLEETFIT_TRY(rest);
  return device;
}

Result<std::vector<FleetDevice>> read_devices(const YamlView& view, bool is_of_space) {
  FLEETFIT_ASSIGN(const auto items, view.items());
  if (items.empty()) return view.error("there has to be a device at least");
  if (items.size() > kMostDevices)
    return view.error(fmt::format("there are more than {}", kMostDevices));
  std::vector<FleetDevice> devices;
  std::set<std::string> names;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto device, read_device(item, is_of_space));
    if (!names.insert(device.name).second)
      return item.error(fmt::format("name: {} occurs twice", device.name));
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::string> read_compute(const YamlView& view) {
  return yaml::read_word<std::string>(view, {{"cpu", "cpu"}, {"cuda", "cuda"}});
}

/// [0.5, 0.25], as the command line takes it.
Result<std::string> read_shares(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto items, view.items());
  std::string text;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(const auto share, yaml::read_positive(item));
    if (share >= 1) return item.error(fmt::format("{} is not below 1", share));
    text += fmt::format("{}{}", text.empty() ? "" : ",", share);
  }
  return text;
}

Result<ElasticPlan> read_elastic(const YamlView& view) {
  ElasticPlan plan;
  const auto whole = [](std::int64_t min) {
    return [min](const YamlView& field) -> Result<std::optional<int>> {
      FLEETFIT_ASSIGN(const auto number, field.as_integer({.min = min, .max = 10'000}));
      return std::optional(static_cast<int>(number));
    };
  };
  const auto count = [](const YamlView& field) -> Result<std::optional<std::int64_t>> {
    FLEETFIT_ASSIGN(const auto number, yaml::read_count(field));
    return std::optional(number);
  };
  const auto positive = [](const YamlView& field) -> Result<std::optional<double>> {
    FLEETFIT_ASSIGN(const auto number, yaml::read_positive(field));
    return std::optional(number);
  };
  Status good = first_error({view.allow_only({"granularity", "merge", "shrink", "distill_epochs",
                                              "tune_epochs", "limit", "compute"}),
                             read_field(view, "granularity", plan.granularity, positive),
                             read_field(view, "merge", plan.merge, whole(0)),
                             read_field(view, "shrink", plan.shrink, read_shares),
                             read_field(view, "distill_epochs", plan.distill_epochs, whole(0)),
                             read_field(view, "tune_epochs", plan.tune_epochs, whole(0)),
                             read_field(view, "limit", plan.limit, count),
                             read_field(view, "compute", plan.compute, read_compute)});
  FLEETFIT_TRY(good);
  return plan;
}

Result<std::size_t> read_measurements(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto number, view.as_integer({.min = 3, .max = kMostMeasurements}));
  return static_cast<std::size_t>(number);
}

Result<std::size_t> read_confirmations(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto number, view.as_integer({.min = 1, .max = kMostMeasurements}));
  return static_cast<std::size_t>(number);
}

Result<std::size_t> read_images(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto number, view.as_integer({.min = 20, .max = 1'000'000'000}));
  return static_cast<std::size_t>(number);
}

Result<std::optional<double>> read_loss(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto number, view.as_number());
  if (number < 0) return view.error(fmt::format("{} is below 0", number));
  return std::optional(number);
}

Status read_common(const YamlView& view, Fleet& fleet) {
  return first_error({read_field(view, "name", fleet.name, read_name),
                      read_field(view, "measurements", fleet.measurements, read_measurements),
                      read_field(view, "confirmations", fleet.confirmations, read_confirmations),
                      read_field(view, "measure_s", fleet.measure_s, yaml::read_positive),
                      read_field(view, "share_within", fleet.share_within, read_loss),
                      read_field(view, "server", fleet.server, read_text),
                      read_field(view, "token_file", fleet.token_file, read_text),
                      read_field(view, "authority", fleet.authority, read_text),
                      read_field(view, "wait_s", fleet.wait_s, yaml::read_positive)});
}

Status read_model_fleet(const YamlView& view, Fleet& fleet) {
  Status good =
      first_error({view.allow_only({"name", "model", "bundle", "data", "elastic", "search_images",
                                    "measurements", "confirmations", "measure_s", "share_within",
                                    "devices", "server", "token_file", "authority", "wait_s"}),
                   yaml::require(view, {"data"}), read_field(view, "data", fleet.data, read_text),
                   read_field(view, "model", fleet.model, read_text),
                   read_field(view, "bundle", fleet.bundle, read_text),
                   read_field(view, "elastic", fleet.elastic, read_elastic),
                   read_field(view, "search_images", fleet.samples, read_images)});
  if (!good) return good;
  if (fleet.model.empty() == fleet.bundle.empty())
    return view.error("expected either model: FILE.onnx, bundle: FILE.ffb or space: NAME");
  const auto elastic = view.find("elastic");
  if (!fleet.bundle.empty() && *elastic) return (*elastic)->error("a bundle is elastic already");
  return {};
}

/// A share needs something to be a share of.
Status check_shares(const YamlView& view, const Fleet& fleet) {
  if (!fleet.original.empty()) return {};
  for (std::size_t i = 0; i < fleet.devices.size(); ++i) {
    const auto& budgets = fleet.devices[i].budgets;
    for (const auto* budget : {&budgets.latency, &budgets.energy, &budgets.memory})
      if (*budget && (*budget)->is_share)
        return (*view.at("devices"))
            .items()
            .value()[i]
            .error("budget: a share needs original: DESIGN to be a share of");
  }
  return {};
}

Status read_space_fleet(const YamlView& view, Fleet& fleet) {
  return first_error(
      {view.allow_only({"name", "space", "accuracy", "latency", "energy", "memory", "original",
                        "measurements", "confirmations", "measure_s", "share_within", "devices",
                        "server", "token_file", "authority", "wait_s"}),
       yaml::require(view, {"accuracy", "latency"}),
       read_field(view, "accuracy", fleet.accuracy, read_text),
       read_field(view, "latency", fleet.table, read_text),
       read_field(view, "energy", fleet.energy_table, read_text),
       read_field(view, "memory", fleet.memory_table, read_text),
       read_field(view, "original", fleet.original, read_text)});
}

/// Budgets of costs that nothing measures.
Status check_tables(const YamlView& view, const Fleet& fleet) {
  const auto devices = (*view.at("devices")).items().value();
  for (std::size_t i = 0; i < fleet.devices.size(); ++i) {
    const auto& device = fleet.devices[i];
    const auto refuse = [&](std::string_view cost) {
      return devices[i].error(fmt::format(
          "budget.{}: there is no table of it; the fleet's key {} names one", cost, cost));
    };
    if (device.budgets.energy && fleet.energy_table.empty() && !device.is_measured())
      return refuse("energy");
    if (device.budgets.memory && fleet.memory_table.empty() && !device.is_measured())
      return refuse("memory");
  }
  return {};
}

Result<Fleet> read_document(const YamlView& view, const std::filesystem::path& file) {
  Fleet fleet{.name = file.stem().string(), .file = file};
  FLEETFIT_ASSIGN(const auto space, view.find("space"));
  Status good = read_field(view, "space", fleet.space, read_text);
  if (good)
    good = space.has_value() ? read_space_fleet(view, fleet) : read_model_fleet(view, fleet);
  if (good) good = read_common(view, fleet);
  FLEETFIT_TRY(good);
  FLEETFIT_ASSIGN(const auto devices, view.at("devices"));
  FLEETFIT_ASSIGN(fleet.devices, read_devices(devices, fleet.is_of_space()));
  if (fleet.is_of_space()) {
    const Status fits = first_error({check_shares(view, fleet), check_tables(view, fleet)});
    FLEETFIT_TRY(fits);
  }
  return fleet;
}

}  // namespace

bool FleetDevice::is_measured() const {
  return measure.starts_with("device:") || measure.starts_with("agent:");
}

std::string Fleet::place(const FleetDevice& device) const {
  return fmt::format("{}:{}: device {}", file.string(), device.line, device.name);
}

std::string Fleet::located(const std::string& path) const {
  const std::filesystem::path written(path);
  if (path.empty() || written.is_absolute()) return path;
  return (file.parent_path() / written).lexically_normal().string();
}

std::string Fleet::located_source(const std::string& source) const {
  const auto colon = source.find(':');
  if (colon == std::string::npos || source.starts_with("device:") || source.starts_with("agent:"))
    return source;
  return source.substr(0, colon + 1) + located(source.substr(colon + 1));
}

Result<Fleet> parse_fleet(std::string_view text, const std::filesystem::path& file) {
  const auto name = file.string();
  FLEETFIT_ASSIGN(const auto document, yaml::parse_yaml(text, name));
  return read_document(YamlView(document, name), file);
}

Result<Fleet> read_fleet(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto text, core::read_file(file, {.max_bytes = std::uint64_t{1} << 20}));
  return parse_fleet(text, file);
}

}  // namespace fleetfit::fit
