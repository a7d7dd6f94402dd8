#include "fleetfit/fit/fleet_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/file.h"
#include "fleetfit/yaml/fields.h"

namespace fleetfit::fit {
namespace {

using yaml::read_field;
using yaml::YamlView;

constexpr std::size_t kLongestName = 100;
constexpr std::size_t kMostDevices = 10'000;
constexpr std::int64_t kMostMeasurements = 400;

Result<std::string> some_text(std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_input, "is empty");
  return std::string(text);
}

/// Names are names of folders, too.
Result<std::string> folder_name(std::string_view text) {
  if (text.size() > kLongestName)
    return fail(ErrorCode::invalid_input, fmt::format("is longer than {} bytes", kLongestName));
  const bool fits = yaml::one_line(text, text.size()) == text &&
                    text.find_first_of("/\\") == std::string::npos && !text.starts_with('.');
  if (fits) return some_text(text);
  return fail(ErrorCode::invalid_input,
              "has to be one line without a slash, and not begin with a dot");
}

/// A text that is not empty where it is written.
template <auto member>
constexpr core::Field text_field(std::string_view name) {
  return core::parsed_field<member, some_text>(name).may_be_missing();
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

Result<WrittenBudgets> read_budgets(const YamlView& view) {
  static constexpr std::string_view kStatistics[] = {"median", "mean", "p90", "p99"};
  static constexpr core::Field kAll[] = {
      core::other_field("latency"), core::other_field("energy"), core::other_field("memory"),
      core::field<&WrittenBudgets::statistic>("of").one_of(kStatistics).may_be_missing()};
  WrittenBudgets budgets{.line = view.node().line};
  FLEETFIT_TRY(yaml::read(view, {.all = kAll, .others = core::OtherKeys::refused}, &budgets));
  const auto of = [](std::string_view unit) {
    return [unit](const YamlView& field) { return read_budget(field, unit); };
  };
  FLEETFIT_TRY(read_field(view, "latency", budgets.latency, of("ms")));
  FLEETFIT_TRY(read_field(view, "energy", budgets.energy, of("mJ")));
  FLEETFIT_TRY(read_field(view, "memory", budgets.memory, of("MB")));
  if (!budgets.latency) return view.error("latency is missing");
  return budgets;
}

core::Fields device_of_model() {
  using Device = FleetDevice;
  static constexpr std::string_view kPrecisions[] = {"fp32", "int8"};
  static constexpr core::Field kAll[] = {
      core::parsed_field<&Device::name, folder_name>("name"),
      core::other_field("budget"),
      core::field<&Device::optional>("optional").may_be_missing(),
      text_field<&Device::device>("device"),
      text_field<&Device::runtime>("runtime"),
      core::field<&Device::threads>("threads").between(1, 1024).may_be_missing(),
      text_field<&Device::cores>("cores"),
      core::field<&Device::precision>("precision").one_of(kPrecisions).may_be_missing(),
      core::field<&Device::cpu_quota_percent>("cpu_quota").between(1, 100'000),
      text_field<&Device::memory_limit>("memory_limit"),
      text_field<&Device::latency>("latency"),
      text_field<&Device::agent>("agent")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields device_of_space() {
  using Device = FleetDevice;
  static constexpr core::Field kAll[] = {
      core::parsed_field<&Device::name, folder_name>("name"), core::other_field("budget"),
      text_field<&Device::measure>("measure"),
      core::field<&Device::references>("references").at_least(1).may_be_missing(),
      text_field<&Device::latency>("latency")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

Status check_of_model(const YamlView& view, const FleetDevice& device) {
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

Status check_of_space(const YamlView& view, const FleetDevice& device) {
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
  FLEETFIT_TRY(yaml::read(view, is_of_space ? device_of_space() : device_of_model(), &device));
  FLEETFIT_ASSIGN(const auto budget, view.at("budget"));
  FLEETFIT_ASSIGN(device.budgets, read_budgets(budget));
  FLEETFIT_TRY(is_of_space ? check_of_space(view, device) : check_of_model(view, device));
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

core::Fields elastic_fields() {
  using Plan = ElasticPlan;
  static constexpr std::string_view kComputes[] = {"cpu", "cuda"};
  static constexpr core::Field kAll[] = {
      core::field<&Plan::granularity>("granularity").above(0),
      core::field<&Plan::merge>("merge").between(0, 10'000),
      core::other_field("shrink"),
      core::field<&Plan::distill_epochs>("distill_epochs").between(0, 10'000),
      core::field<&Plan::tune_epochs>("tune_epochs").between(0, 10'000),
      core::field<&Plan::limit>("limit").between(1, 1'000'000'000),
      core::field<&Plan::compute>("compute").one_of(kComputes).may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

Result<ElasticPlan> read_elastic(const YamlView& view) {
  ElasticPlan plan;
  FLEETFIT_TRY(yaml::read(view, elastic_fields(), &plan));
  FLEETFIT_TRY(read_field(view, "shrink", plan.shrink, read_shares));
  return plan;
}

Result<std::optional<double>> read_loss(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto number, view.as_number());
  if (number < 0) return view.error(fmt::format("{} is below 0", number));
  return std::optional(number);
}

core::Fields model_fields() {
  static constexpr core::Field kAll[] = {
      core::parsed_field<&Fleet::name, folder_name>("name").may_be_missing(),
      text_field<&Fleet::model>("model"),
      text_field<&Fleet::bundle>("bundle"),
      core::parsed_field<&Fleet::data, some_text>("data"),
      core::other_field("elastic"),
      core::field<&Fleet::samples>("search_images").between(20, 1'000'000'000).may_be_missing()};
  return {.all = kAll};
}

core::Fields space_fields() {
  static constexpr core::Field kAll[] = {
      core::parsed_field<&Fleet::name, folder_name>("name").may_be_missing(),
      core::parsed_field<&Fleet::space, some_text>("space"),
      core::parsed_field<&Fleet::accuracy, some_text>("accuracy"),
      core::parsed_field<&Fleet::table, some_text>("latency"),
      text_field<&Fleet::energy_table>("energy"),
      text_field<&Fleet::memory_table>("memory"),
      text_field<&Fleet::original>("original")};
  return {.all = kAll};
}

/// What fleets of models and of spaces have.
core::Fields common_fields() {
  static constexpr core::Field kAll[] = {
      core::field<&Fleet::measurements>("measurements")
          .between(3, kMostMeasurements)
          .may_be_missing(),
      core::field<&Fleet::confirmations>("confirmations")
          .between(1, kMostMeasurements)
          .may_be_missing(),
      core::field<&Fleet::measure_s>("measure_s").above(0).may_be_missing(),
      core::other_field("share_within"),
      core::other_field("devices"),
      text_field<&Fleet::server>("server"),
      text_field<&Fleet::token_file>("token_file"),
      text_field<&Fleet::authority>("authority"),
      core::field<&Fleet::wait_s>("wait_s").above(0).may_be_missing()};
  return {.all = kAll};
}

Status read_fields(const YamlView& view, const core::Fields& own, Fleet& fleet) {
  auto keys = core::keys_of(own);
  const auto common = core::keys_of(common_fields());
  keys.insert(keys.end(), common.begin(), common.end());
  FLEETFIT_TRY(view.allow_only(keys));
  FLEETFIT_TRY(yaml::read(view, own, &fleet));
  FLEETFIT_TRY(yaml::read(view, common_fields(), &fleet));
  return read_field(view, "share_within", fleet.share_within, read_loss);
}

Status read_model_fleet(const YamlView& view, Fleet& fleet) {
  FLEETFIT_TRY(read_fields(view, model_fields(), fleet));
  FLEETFIT_TRY(read_field(view, "elastic", fleet.elastic, read_elastic));
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
  FLEETFIT_TRY(space ? read_fields(view, space_fields(), fleet) : read_model_fleet(view, fleet));
  FLEETFIT_ASSIGN(const auto devices, view.at("devices"));
  FLEETFIT_ASSIGN(fleet.devices, read_devices(devices, fleet.is_of_space()));
  if (fleet.is_of_space()) {
    FLEETFIT_TRY(check_shares(view, fleet));
    FLEETFIT_TRY(check_tables(view, fleet));
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
