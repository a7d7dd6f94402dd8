#include "app/elastic/adapt_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/devices/kernel_choices.h"
#include "app/devices/opened_device.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/random.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/transfer/adaproxy.h"

namespace fleetfit::app {
namespace {

/// Only more than one thread would tell this process from one of its own.
bool is_this_process(const measure::Device& device) {
  return is_engine(device.runtime) && device.threads == 1 && device.cores.empty() &&
         !device.limits.any();
}

class InProcess final : public DeviceTimer {
 public:
  InProcess(measure::Device device, KernelChoices choices, adapt::EngineTimerOptions options)
      : device_(std::move(device)),
        choices_(std::move(choices)),
        timer_(adapt::make_engine_timer(std::move(options))) {}

  adapt::NetworkTimer& timer() override { return *timer_; }

  Status keep_kernels() override {
    measure::Measurement found;
    found.kernel_choices = core::format_json_line(timer_->new_choices());
    return choices_.save(device_, found);
  }

 private:
  measure::Device device_;
  KernelChoices choices_;
  std::unique_ptr<adapt::EngineTimer> timer_;
};

class OnRuntime final : public DeviceTimer {
 public:
  OnRuntime(OpenedDevice device, std::unique_ptr<adapt::NetworkTimer> timer)
      : device_(std::move(device)), timer_(std::move(timer)) {}

  adapt::NetworkTimer& timer() override { return *timer_; }
  Status keep_kernels() override { return {}; }

 private:
  OpenedDevice device_;  // outlives the timer, which borrows its runtime
  std::unique_ptr<adapt::NetworkTimer> timer_;
};

}  // namespace

Result<std::unique_ptr<DeviceTimer>> open_timer(Workplace& workplace, std::string_view name,
                                                const adapt::TimingOptions& timing,
                                                std::size_t program_bytes) {
  FLEETFIT_ASSIGN(const auto found, find_device(workplace, name));
  const auto& device = found.device;
  if (device.precision != measure::Precision::fp32)
    return fail(ErrorCode::unsupported,
                fmt::format("device {}: it runs int8, subnets are float", name));
  KernelChoices choices(workplace);
  FLEETFIT_ASSIGN(auto known, choices.known(device));
  if (is_this_process(device)) {
    return std::make_unique<InProcess>(
        device, std::move(choices),
        adapt::EngineTimerOptions{.library = library_of(device.runtime),
                                  .known = parse_choices(known),
                                  .timing = timing,
                                  .program_bytes = program_bytes});
  }
  FLEETFIT_ASSIGN(auto opened, open_device(workplace, name));
  auto load = load_options(opened.device);
  load.known_choices = std::move(known);
  FLEETFIT_ASSIGN(auto timer, adapt::make_runtime_timer(opened.runtime(), std::move(load), timing));
  return std::make_unique<OnRuntime>(std::move(opened), std::move(timer));
}

namespace {

using adapt::LatencyTable;
using elastic::SubnetSpace;
using elastic::Supernet;

/// The first column of each gene in the encoding "one-hot", in which each gene is a slot.
std::vector<std::size_t> first_columns(const SubnetSpace& space) {
  std::vector<std::size_t> columns;
  std::size_t next = 0;
  for (const auto& gene : space.genes()) {
    columns.push_back(next);
    next += gene.choices.size();
  }
  return columns;
}

/// What blocks without a choice cost, for each model.
std::vector<double> fixed_ms(const SubnetSpace& space, const LatencyTable& table) {
  std::vector<double> sums;
  for (std::size_t m = 0; m < table.ms.size(); ++m) {
    double& sum = sums.emplace_back(0);
    for (std::size_t b = 0; b < table.ms[m].size(); ++b)
      if (!space.gene_of(m, b)) sum += table.ms[m][b].front();
  }
  return sums;
}

/// Whether the first gene says which model it is.
bool chooses_model(const SubnetSpace& space) { return space.genes().front().name == "model"; }

transfer::OperatorPrices prices_of(const SubnetSpace& space, const LatencyTable& table) {
  transfer::OperatorPrices prices{.constant = table.overhead_ms,
                                  .placed = std::vector<double>(transfer::operator_columns(space))};
  const auto columns = first_columns(space);
  const auto fixed = fixed_ms(space, table);
  if (chooses_model(space)) {
    std::ranges::copy(fixed, prices.placed.begin());
  } else {
    prices.constant += fixed.front();
  }
  for (std::size_t m = 0; m < table.ms.size(); ++m)
    for (std::size_t b = 0; b < table.ms[m].size(); ++b)
      if (const auto gene = space.gene_of(m, b))
        std::ranges::copy(table.ms[m][b],
                          prices.placed.begin() + static_cast<std::ptrdiff_t>(columns[*gene]));
  return prices;
}

/// The prices as a table of the same form. What all subnets of a model pay goes to its blocks
/// without a choice, in the same proportions as before.
LatencyTable table_of(const SubnetSpace& space, LatencyTable table,
                      const transfer::OperatorPrices& prices) {
  const auto columns = first_columns(space);
  const auto fixed = fixed_ms(space, table);
  const auto placed = [&](std::size_t column) {
    return prices.placed.empty() ? 0.0 : prices.placed[column];
  };
  table.overhead_ms = chooses_model(space) ? prices.constant : 0;
  for (std::size_t m = 0; m < table.ms.size(); ++m) {
    const double now = chooses_model(space) ? placed(m) : prices.constant;
    for (std::size_t b = 0; b < table.ms[m].size(); ++b) {
      const auto gene = space.gene_of(m, b);
      for (std::size_t i = 0; i < table.ms[m][b].size(); ++i) {
        double& ms = table.ms[m][b][i];
        ms = gene ? placed(columns[*gene] + i) : (fixed[m] > 0 ? ms * now / fixed[m] : 0);
        ms = std::max(ms, 0.0);
      }
    }
    if (!(fixed[m] > 0)) table.overhead_ms += now;
  }
  return table;
}

space::DesignIndex subnets_to_time(const SubnetSpace& space, const ProxyTableOptions& options) {
  space::DesignIndex designs(space);
  designs.add(space.original());
  auto random = core::Random(options.seed).split("proxy");
  std::vector<space::Choice> design(space.genes().size());
  for (std::size_t i = 0; i < 4 * options.subnets && designs.size() < options.subnets; ++i) {
    space.sample(random, design);
    designs.add(design);
  }
  return designs;
}

}  // namespace

Result<LatencyTable> table_from_proxy(const std::vector<Supernet>& models, const SubnetSpace& space,
                                      const LatencyTable& proxy, adapt::NetworkTimer& timer,
                                      const ProxyTableOptions& options) {
  const auto designs = subnets_to_time(space, options);
  std::vector<graph::Graph> networks;
  std::vector<adapt::TimedSubnet> timed;
  for (std::size_t i = 0; i < designs.size(); ++i) {
    timed.push_back({.path = space.path(designs.designs()[i])});
    FLEETFIT_ASSIGN(auto network, elastic::join(models, timed.back().path));
    networks.push_back(std::move(network));
  }
  FLEETFIT_ASSIGN(const auto times, timer.time_in_turns(networks));
  std::vector<double> latencies;
  for (std::size_t i = 0; i < timed.size(); ++i) latencies.push_back(timed[i].ms = times[i].ms);
  const transfer::LinearProxy linear(proxy.device, space,
                                     {.prices = prices_of(space, proxy), .encoding = "one-hot"});
  FLEETFIT_ASSIGN(const auto adapted,
                  transfer::adapt(linear, {.designs = designs.designs(), .latency_ms = latencies},
                                  {.validation = static_cast<int>(timed.size() / 4)}));
  // An adapted proxy keeps the order of subnets; the times themselves set its milliseconds.
  return adapt::correct_table(table_of(space, proxy, adapted.parts().prices), timed);
}

}  // namespace fleetfit::app
