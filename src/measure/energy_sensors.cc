#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "fleetfit/core/sleep.h"
#include "fleetfit/measure/energy.h"
#include "measure/kernel_file.h"

namespace fleetfit::measure {
namespace {

namespace fs = std::filesystem;
using Meter = std::unique_ptr<EnergyMeter>;

// A sensor that counts energy: in microjoules, starting again from 0 after `wraps_at_uj`.
struct Counter {
  fs::path path;
  std::string name;
  std::int64_t wraps_at_uj = 0;  // 0: never
  std::int64_t start_uj = 0;
};

std::string names_of(const auto& sensors) {
  std::vector<std::string> names;
  for (const auto& sensor : sensors) names.push_back(sensor.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

class CounterMeter final : public EnergyMeter {
 public:
  CounterMeter(const std::string& kind, std::vector<Counter> counters)
      : name_(kind + " " + names_of(counters)), counters_(std::move(counters)) {}

  std::string name() const override { return name_; }
  EnergySource source() const override { return EnergySource::measured; }

  Status start() override {
    for (auto& counter : counters_) {
      FLEETFIT_ASSIGN(counter.start_uj, read_number(counter.path));
    }
    started_ = true;
    return {};
  }

  Result<double> stop() override {
    if (!std::exchange(started_, false)) {
      return fail(ErrorCode::internal, name_ + ": was not started");
    }
    double sum_uj = 0;
    for (const auto& counter : counters_) {
      FLEETFIT_ASSIGN(const auto now, read_number(counter.path));
      std::int64_t passed = now - counter.start_uj;
      if (passed < 0 && counter.wraps_at_uj > 0) passed += counter.wraps_at_uj;
      if (passed < 0) {
        return fail(ErrorCode::device_failed, counter.path.string() + ": ran backwards");
      }
      sum_uj += static_cast<double>(passed);
    }
    return sum_uj / 1000;
  }

 private:
  std::string name_;
  std::vector<Counter> counters_;
  bool started_ = false;
};

// A sensor that shows power.
struct Gauge {
  std::string name;
  std::function<Result<double>()> read_mw;
};

// Samples gauges in a thread of its own and integrates by the trapezoidal rule.
class GaugeMeter final : public EnergyMeter {
 public:
  GaugeMeter(const std::string& kind, std::vector<Gauge> gauges, const core::Clock& clock,
             std::chrono::milliseconds period)
      : name_(kind + " " + names_of(gauges)),
        gauges_(std::move(gauges)),
        clock_(clock),
        period_(period) {}

  std::string name() const override { return name_; }
  EnergySource source() const override { return EnergySource::measured; }

  Status start() override {
    sampler_ = {};
    energy_mj_ = 0;
    last_ = sample();
    FLEETFIT_TRY(*last_);
    sampler_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return {};
  }

  Result<double> stop() override {
    if (!sampler_.joinable()) return fail(ErrorCode::internal, name_ + ": was not started");
    sampler_.request_stop();
    sampler_.join();
    take();
    FLEETFIT_TRY(*last_);
    return energy_mj_;
  }

 private:
  struct Sample {
    std::chrono::nanoseconds time;
    double power_mw;
  };

  Result<Sample> sample() const {
    double sum = 0;
    for (const auto& gauge : gauges_) {
      FLEETFIT_ASSIGN(const auto power, gauge.read_mw());
      sum += power;
    }
    return Sample{clock_.now(), sum};
  }

  void take() {
    if (!*last_) return;
    auto next = sample();
    if (next) {
      const std::chrono::duration<double> passed = next->time - (*last_)->time;
      energy_mj_ += passed.count() * (next->power_mw + (*last_)->power_mw) / 2;
    }
    last_ = std::move(next);
  }

  void run(const std::stop_token& stop) {
    while (core::sleep_unless_stopped(period_, stop)) take();
  }

  std::string name_;
  std::vector<Gauge> gauges_;
  const core::Clock& clock_;
  std::chrono::milliseconds period_;
  // The sampler's while it runs.
  std::optional<Result<Sample>> last_;
  double energy_mj_ = 0;
  std::jthread sampler_;
};

tl::unexpected<Error> missing(std::string_view what) {
  return fail(ErrorCode::not_found, fmt::format("this machine has no {}", what));
}

// Of "intel-rapl:0" and the like. Its parts "intel-rapl:0:0" (cores, memory) are counted in it, and
// "intel-rapl-mmio:0" is the same package seen in another way.
bool is_package_zone(std::string_view zone) {
  const auto colon = zone.find(':');
  return colon != std::string_view::npos && zone.find(':', colon + 1) == std::string_view::npos &&
         zone.substr(0, colon) == "intel-rapl";
}

// Energy sensors of other parts of a machine (disks, network, graphics) do not tell what a model
// on the CPU takes.
bool is_of_the_board(std::string_view chip) {
  return chip.starts_with("ina") || chip == "amd_energy" || chip == "fam15h_power" ||
         chip.starts_with("power_meter") || chip == "scmi_sensors";
}

bool can_read(const fs::path& path) { return find_number(path).has_value(); }

std::vector<std::string> channels_of(const fs::path& chip, std::string_view prefix,
                                     std::string_view suffix) {
  std::vector<std::string> channels;
  for (const auto& name : names_in(chip)) {
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    const auto number =
        std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    if (to_number(number) && can_read(chip / name)) channels.emplace_back(number);
  }
  return channels;
}

Result<double> microwatts_file(const fs::path& path) {
  return read_number(path).map([](std::int64_t uw) { return static_cast<double>(uw) / 1000; });
}

// One in thousands or millions of the unit times another: `scale` makes milliwatts of the product.
Result<double> product_mw(const fs::path& current, const fs::path& voltage, double scale) {
  FLEETFIT_ASSIGN(const auto amperes, read_number(current));
  FLEETFIT_ASSIGN(const auto volts, read_number(voltage));
  return static_cast<double>(amperes) * static_cast<double>(volts) * scale;
}

std::string label_of(const fs::path& chip, std::string_view kind, std::string_view channel) {
  return find_setting(chip / fmt::format("{}{}_label", kind, channel))
      .value_or(fmt::format("{}{}", kind, channel));
}

std::vector<Gauge> power_gauges(const fs::path& chip, const std::string& chip_name) {
  std::vector<Gauge> gauges;
  for (const auto& channel : channels_of(chip, "power", "_input")) {
    const auto path = chip / fmt::format("power{}_input", channel);
    gauges.push_back({chip_name + "/" + label_of(chip, "power", channel),
                      [path] { return microwatts_file(path); }});
  }
  if (!gauges.empty()) return gauges;
  // INA3221 and the like: millivolts of bus N are in inN, milliamperes of it in currN.
  for (const auto& channel : channels_of(chip, "curr", "_input")) {
    const auto current = chip / fmt::format("curr{}_input", channel);
    const auto voltage = chip / fmt::format("in{}_input", channel);
    if (!can_read(voltage)) continue;
    gauges.push_back({chip_name + "/" + label_of(chip, "in", channel),
                      [current, voltage] { return product_mw(current, voltage, 1e-3); }});
  }
  return gauges;
}

// Boards such as Jetson's tell the whole input (VDD_IN, POM_5V_IN) beside the parts it feeds.
void keep_whole_input(std::vector<Gauge>& gauges) {
  const auto is_input = [](const Gauge& gauge) { return gauge.name.ends_with("_IN"); };
  if (std::ranges::any_of(gauges, is_input)) std::erase_if(gauges, std::not_fn(is_input));
}

std::vector<Counter> energy_counters(const fs::path& chip, const std::string& chip_name) {
  std::vector<Counter> counters;
  for (const auto& channel : channels_of(chip, "energy", "_input")) {
    counters.push_back({.path = chip / fmt::format("energy{}_input", channel),
                        .name = chip_name + "/" + label_of(chip, "energy", channel)});
  }
  // amd_energy reports each core and each socket; a socket holds its cores.
  const auto is_socket = [](const Counter& c) {
    return c.name.find("socket") != std::string::npos;
  };
  if (std::ranges::any_of(counters, is_socket)) std::erase_if(counters, std::not_fn(is_socket));
  return counters;
}

std::optional<Gauge> battery_gauge(const fs::path& folder, const std::string& name) {
  const auto power = folder / "power_now";
  const auto current = folder / "current_now";
  const auto voltage = folder / "voltage_now";
  std::function<Result<double>()> read;
  if (can_read(power)) {
    read = [power] { return microwatts_file(power); };
  } else if (can_read(current) && can_read(voltage)) {
    read = [current, voltage] { return product_mw(current, voltage, 1e-9); };
  } else {
    return std::nullopt;
  }
  const auto status = folder / "status";
  return Gauge{name, [status, read, name]() -> Result<double> {
                 const auto state = find_setting(status).value_or("unknown");
                 if (state != "Discharging") {
                   return fail(
                       ErrorCode::unsupported,
                       fmt::format("the battery {} is not being discharged ({})", name, state));
                 }
                 // Some drivers count what leaves the battery as negative.
                 return read().map([](double mw) { return std::abs(mw); });
               }};
}

}  // namespace

Result<Meter> open_rapl(const EnergyOptions& options) {
  const auto folder = options.root / "sys/class/powercap";
  std::vector<Counter> counters;
  for (const auto& zone : names_in(folder)) {
    if (!is_package_zone(zone)) continue;
    const auto path = folder / zone / "energy_uj";
    const auto now = read_number(path);
    if (!now) {
      return fail(now.error().code, fmt::format("RAPL cannot be read, it is for root alone on most "
                                                "systems: {}",
                                                now.error().message));
    }
    counters.push_back(
        {.path = path,
         .name = find_setting(folder / zone / "name").value_or(zone),
         .wraps_at_uj = find_number(folder / zone / "max_energy_range_uj").value_or(0)});
  }
  // "psys" is the whole platform, packages included.
  const auto is_package = [](const Counter& c) { return c.name.starts_with("package"); };
  if (std::ranges::any_of(counters, is_package)) std::erase_if(counters, std::not_fn(is_package));
  if (counters.empty()) return missing("RAPL (no intel-rapl zone in sys/class/powercap)");
  return std::make_unique<CounterMeter>("RAPL", std::move(counters));
}

Result<Meter> open_hwmon(const core::Clock& clock, const EnergyOptions& options) {
  const auto folder = options.root / "sys/class/hwmon";
  std::vector<Counter> counters;
  std::vector<Gauge> gauges;
  for (const auto& entry : names_in(folder)) {
    const auto chip = folder / entry;
    const auto name = find_setting(chip / "name").value_or(entry);
    if (!is_of_the_board(name)) continue;
    std::ranges::move(energy_counters(chip, name), std::back_inserter(counters));
    std::ranges::move(power_gauges(chip, name), std::back_inserter(gauges));
  }
  if (!counters.empty()) return std::make_unique<CounterMeter>("hwmon", std::move(counters));
  keep_whole_input(gauges);
  if (gauges.empty()) return missing("hwmon sensor of power or energy");
  return std::make_unique<GaugeMeter>("hwmon", std::move(gauges), clock, options.sample_period);
}

Result<Meter> open_battery(const core::Clock& clock, const EnergyOptions& options) {
  const auto folder = options.root / "sys/class/power_supply";
  std::vector<Gauge> gauges;
  std::optional<Error> idle;
  for (const auto& name : names_in(folder)) {
    if (find_setting(folder / name / "type") != "Battery") continue;
    // Batteries of mice and pens have the scope "Device".
    if (find_setting(folder / name / "scope") == "Device") continue;
    auto gauge = battery_gauge(folder / name, name);
    if (!gauge) continue;
    if (const auto now = gauge->read_mw(); !now) {
      idle = now.error();
    } else {
      gauges.push_back(*std::move(gauge));
    }
  }
  if (gauges.empty() && idle) return tl::unexpected(*idle);
  if (gauges.empty()) return missing("battery that tells its power");
  return std::make_unique<GaugeMeter>("battery", std::move(gauges), clock, options.sample_period);
}

OpenedMeter open_energy_meter(const core::Clock& clock, const EnergyOptions& options) {
  std::vector<std::string> missing;
  OpenedMeter opened;
  const auto try_one = [&](Result<std::unique_ptr<EnergyMeter>> meter) {
    if (meter) {
      opened.meter = *std::move(meter);
    } else {
      missing.push_back(std::move(meter.error().message));
    }
    return opened.meter != nullptr;
  };
  const bool found = try_one(open_rapl(options)) || try_one(open_hwmon(clock, options)) ||
                     try_one(open_battery(clock, options)) ||
                     (options.model && try_one(open_modelled(*options.model, options)));
  if (!found && !options.model) missing.emplace_back("no power table was given");
  const auto why = fmt::format("{}", fmt::join(missing, "; "));
  if (!found) {
    opened.reason = "no energy: " + why;
  } else {
    opened.reason = fmt::format("energy is {} by {}{}", to_string(opened.meter->source()),
                                opened.meter->name(), why.empty() ? "" : ", because: " + why);
  }
  return opened;
}

}  // namespace fleetfit::measure
