#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/fit/report.h"

namespace fleetfit::fit {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kStates = {"fitted", "predicted", "unreachable",
                                                     "waiting", "failed"};

ordered_json number(double value) {
  return std::isnan(value) ? ordered_json() : ordered_json(value);
}

ordered_json budget_json(const FitBudget& budget) {
  ordered_json json{{"cost", to_string(budget.quantity)}, {"limit", number(budget.limit)}};
  if (budget.quantity == space::Quantity::latency_ms) json["of"] = budget.statistic;
  if (budget.share) json["share"] = *budget.share;
  return json;
}

ordered_json point_json(const FitPoint& point, const std::vector<FitBudget>& budgets) {
  ordered_json json{{"design", point.design}, {"accuracy", number(point.reported_accuracy())}};
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    ordered_json cost;
    if (i < point.measured.size()) cost["measured"] = number(point.measured[i]);
    if (i < point.expected.size()) {
      const auto& [value, low, high] = point.expected[i];
      cost["expected"] = number(value);
      cost["interval90"] = {number(low), number(high)};
    }
    json[std::string(to_string(budgets[i].quantity))] = cost;
  }
  return json;
}

ordered_json points_json(const std::vector<FitPoint>& points,
                         const std::vector<FitBudget>& budgets) {
  return core::json_list(points, [&](const auto& point) { return point_json(point, budgets); });
}

ordered_json optional_point(const std::optional<FitPoint>& point,
                            const std::vector<FitBudget>& budgets) {
  return point ? point_json(*point, budgets) : ordered_json();
}

ordered_json tried_json(const FittedDevice& device) {
  auto json = ordered_json::array();
  for (const auto& point : device.tried) {
    json.push_back(point_json(point, device.budgets));
    json.back()["why"] = point.confirms ? "confirm" : "learn";
  }
  return json;
}

ordered_json device_json(const FittedDevice& device) {
  auto budgets = core::json_list(device.budgets, budget_json);
  auto files = ordered_json::array();
  for (const auto& file : device.files) files.push_back(file.generic_string());
  std::size_t confirmations = 0;
  for (const auto& point : device.tried) confirmations += point.confirms ? 1 : 0;
  return {{"device", device.name},
          {"state", to_string(device.state)},
          {"reason", device.reason},
          {"about", device.about},
          {"budgets", budgets},
          {"original", optional_point(device.original, device.budgets)},
          {"best", optional_point(device.best, device.budgets)},
          {"nearest", optional_point(device.nearest, device.budgets)},
          {"better", points_json(device.better, device.budgets)},
          {"pool", points_json(device.pool, device.budgets)},
          {"measurements", device.tried.size()},
          {"confirmations", confirmations},
          {"measured", tried_json(device)},
          {"measure_next", device.measure_next},
          {"files", files}};
}

ordered_json shared_json(const FitReport& report) {
  if (!report.share_within) return nullptr;
  auto models = ordered_json::array();
  for (const auto& model : report.shared)
    models.push_back({{"design", model.design},
                      {"accuracy", model.reported_accuracy()},
                      {"devices", model.devices}});
  return {{"within", *report.share_within},
          {"models", models},
          {"measurements", report.sharing_measurements}};
}

ordered_json account_json(const FitAccount& account) {
  return {{"measurements", account.measurements},
          {"seconds", account.seconds},
          {"alone",
           {{"measurements", account.alone_measurements},
            {"seconds", account.alone_seconds},
            {"means", account.alone_means}}}};
}

}  // namespace

std::string_view to_string(FitState state) { return kStates[static_cast<std::size_t>(state)]; }

bool FitReport::all_fitted() const {
  return std::ranges::all_of(devices, [](const FittedDevice& device) {
    return device.state == FitState::fitted || device.state == FitState::predicted;
  });
}

ordered_json to_json(const FitReport& report) {
  auto devices = core::json_list(report.devices, device_json);
  return {{"fleet", report.name},
          {"about", report.about},
          {"accuracy", report.accuracy_about},
          {"all_fitted", report.all_fitted()},
          {"devices", devices},
          {"left_out", report.left_out},
          {"shared", shared_json(report)},
          {"account", account_json(report.account)},
          {"bundle", report.bundle.generic_string()},
          {"report", report.page.generic_string()}};
}

Status write_report(const FitReport& report, const std::filesystem::path& folder) {
  const auto json = to_json(report);
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const auto of_device = folder / "devices" / report.devices[i].name;
    FLEETFIT_TRY(core::create_folder(of_device));
    FLEETFIT_TRY(
        core::write_file(of_device / "device.json", core::format_json(json.at("devices").at(i))));
  }
  FLEETFIT_TRY(core::write_file(folder / "fit.json", core::format_json(json)));
  return core::write_file(report.page, fit_page(report));
}

}  // namespace fleetfit::fit
