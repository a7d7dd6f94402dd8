#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/plausible.h"
#include "fleetfit/core/process_info.h"
#include "fleetfit/measure/energy.h"
#include "measure/kernel_file.h"

namespace fleetfit::measure {
namespace {

namespace fs = std::filesystem;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double own_cpu_seconds() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    sum += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return sum;
}

class ModelledMeter final : public EnergyMeter {
 public:
  ModelledMeter(std::string name, double power_mw, const EnergyOptions& options)
      : name_(std::move(name)), power_mw_(power_mw), root_(options.root), pid_(options.pid) {}

  std::string name() const override { return name_; }
  EnergySource source() const override { return EnergySource::modelled; }

  Status start() override {
    return cpu_seconds().map([&](double now) { start_ = now; });
  }

  Result<double> stop() override {
    const auto start = std::exchange(start_, std::nullopt);
    if (!start) return fail(ErrorCode::internal, name_ + ": was not started");
    return cpu_seconds().map([&](double now) { return (now - *start) * power_mw_; });
  }

 private:
  Result<double> cpu_seconds() const {
    if (pid_ == 0) return own_cpu_seconds();
    FLEETFIT_ASSIGN(const auto info, core::process_info(pid_, root_ / "proc"));
    return info.cpu_s;
  }

  std::string name_;
  double power_mw_;
  fs::path root_;
  int pid_;
  std::optional<double> start_;
};

std::vector<PowerPoint> points_of(const PowerTable& table, int cluster) {
  std::vector<PowerPoint> points;
  std::ranges::copy_if(table.points, std::back_inserter(points),
                       [&](const PowerPoint& p) { return p.cluster == cluster; });
  return points;
}

struct Columns {
  std::size_t soc, run, device, cpu, frequency, power;
};

Result<Columns> columns_of(const core::CsvTable& csv) {
  Columns columns{};
  const std::pair<std::string_view, std::size_t*> wanted[] = {{"soc", &columns.soc},
                                                              {"run", &columns.run},
                                                              {"device", &columns.device},
                                                              {"cpu", &columns.cpu},
                                                              {"freq_khz", &columns.frequency},
                                                              {"power_mw", &columns.power}};
  for (const auto& [name, out] : wanted) {
    FLEETFIT_ASSIGN(*out, csv.column(name));
  }
  return columns;
}

Result<PowerPoint> point_of(const core::CsvTable& csv, std::size_t row, const Columns& columns) {
  const auto whole = [&](std::size_t column) -> Result<std::int64_t> {
    const auto number = to_number(csv.cell(row, column));
    if (!number || *number < 0) return csv.error_at(row, column, "is not a whole number");
    return *number;
  };
  FLEETFIT_ASSIGN(const auto cpu, whole(columns.cpu));
  if (cpu > 4095) return csv.error_at(row, columns.cpu, "is not the number of a core");
  FLEETFIT_ASSIGN(const auto frequency, whole(columns.frequency));
  FLEETFIT_ASSIGN(const auto power, csv.number(row, columns.power));
  if (power < 0) return csv.error_at(row, columns.power, "is a negative power");
  if (const auto problem = core::absurdity(core::kPlausiblePowerMw, power))
    return csv.error_at(row, columns.power, *problem);
  return PowerPoint{static_cast<int>(cpu), frequency, power};
}

}  // namespace

Result<double> PowerTable::power_mw(int cluster, std::int64_t frequency_khz) const {
  const auto known = points_of(*this, cluster);
  if (known.empty()) {
    std::set<int> clusters;
    for (const auto& point : points) clusters.insert(point.cluster);
    return fail(ErrorCode::not_found,
                fmt::format("the power table of {} has no cluster {}, only {}", soc, cluster,
                            fmt::join(clusters, ", ")));
  }
  const auto above = std::ranges::lower_bound(known, frequency_khz, {}, &PowerPoint::frequency_khz);
  if (above == known.begin()) return known.front().power_mw;
  if (above == known.end()) return known.back().power_mw;
  const auto& low = *(above - 1);
  const double share = static_cast<double>(frequency_khz - low.frequency_khz) /
                       static_cast<double>(above->frequency_khz - low.frequency_khz);
  return std::lerp(low.power_mw, above->power_mw, share);
}

PowerModel assumed_power(double watts_per_core) {
  PowerModel model;
  model.table.soc = "which is an assumption";
  model.table.points = {{.power_mw = 1000 * watts_per_core}};
  return model;
}

Result<PowerTable> read_power_table(const fs::path& path, const PowerTableChoice& choice) {
  FLEETFIT_ASSIGN(const auto csv, core::read_csv(path));
  FLEETFIT_ASSIGN(const auto columns, columns_of(csv));

  PowerTable table{.soc = choice.soc};
  std::set<std::string, std::less<>> socs;
  for (std::size_t row = 0; row < csv.rows(); ++row) socs.emplace(csv.cell(row, columns.soc));
  const bool ambiguous = choice.soc.empty() && socs.size() > 1;
  for (std::size_t row = 0; row < csv.rows() && !ambiguous; ++row) {
    const auto soc = csv.cell(row, columns.soc);
    const bool wanted = choice.soc.empty() || soc == choice.soc;
    if (!wanted || csv.cell(row, columns.run) != choice.run) continue;
    FLEETFIT_ASSIGN(auto point, point_of(csv, row, columns));
    table.soc = soc;
    table.device = csv.cell(row, columns.device);
    table.points.push_back(point);
  }
  if (ambiguous || table.points.empty()) {
    return fail(ambiguous ? ErrorCode::invalid_input : ErrorCode::not_found,
                fmt::format("{}: {}; it has {}", path.string(),
                            ambiguous ? "holds several SoCs, choose one"
                                      : fmt::format(R"(has no power of "{}" in run "{}")",
                                                    choice.soc, choice.run),
                            fmt::join(socs, ", ")));
  }
  std::ranges::sort(table.points, {},
                    [](const PowerPoint& p) { return std::pair(p.cluster, p.frequency_khz); });
  return table;
}

Result<std::unique_ptr<EnergyMeter>> open_modelled(const PowerModel& model,
                                                   const EnergyOptions& options) {
  const auto known = points_of(model.table, model.cluster);
  const auto frequency =
      model.frequency_khz > 0 || known.empty() ? model.frequency_khz : known.back().frequency_khz;
  FLEETFIT_ASSIGN(const auto power, model.table.power_mw(model.cluster, frequency));
  auto name =
      frequency == 0
          ? fmt::format("{:.5g} W of each busy core, {}", power / 1000, model.table.soc)
          : fmt::format("the power table of {}, cluster {} at {} kHz: {:.5g} mW of a busy core",
                        model.table.soc, model.cluster, frequency, power);
  return std::make_unique<ModelledMeter>(std::move(name), power, options);
}

}  // namespace fleetfit::measure
