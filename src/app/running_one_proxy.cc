#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/transfer_tables.h"
#include "fleetfit/app/transferring.h"

namespace fleetfit::app {
namespace {

/// A column of the request's table, or "table:FILE#COLUMN".
Result<std::unique_ptr<const space::Source>> open_numbers(const OneProxyRequest& request,
                                                          const space::Space& space,
                                                          const std::string& text,
                                                          space::CellRule cells) {
  constexpr std::string_view kTable = "table:";
  std::filesystem::path file = request.table;
  std::string column = text;
  if (text.starts_with(kTable)) {
    const auto hash = text.rfind('#');
    if (hash == std::string::npos) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("'{}' names no column: expected table:FILE#COLUMN", text));
    }
    file = text.substr(kTable.size(), hash - kTable.size());
    column = text.substr(hash + 1);
  }
  const auto table = space::read_design_table(file, space, {.columns = {column}, .cells = cells});
  if (!table) return tl::unexpected(table.error());
  return space::table_source(*table, 0);
}

/// All designs of which none is worse than another in both numbers.
space::Population best_designs(const space::Population& designs, std::span<const double> latency,
                               std::span<const double> accuracy) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < designs.size(); ++i)
    if (!std::isnan(latency[i]) && !std::isnan(accuracy[i])) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return latency[a] != latency[b] ? latency[a] < latency[b] : accuracy[a] > accuracy[b];
  });
  space::Population found(designs.genes());
  double best = -std::numeric_limits<double>::infinity();
  for (const auto i : order) {
    if (!(accuracy[i] > best)) continue;
    best = accuracy[i];
    found.add(designs[i]);
  }
  return found;
}

transfer::OneProxyActions actions_on(const space::Population& designs,
                                     const space::Source& accuracy, const space::Source& target) {
  transfer::OneProxyActions actions;
  actions.measure = [&target](space::DesignBatch batch) -> Result<std::vector<double>> {
    std::vector<double> latency_ms(batch.size());
    if (auto done = target.evaluate(batch, latency_ms); !done)
      return tl::unexpected(std::move(done.error()));
    return latency_ms;
  };
  actions.search = [&](const space::Source& latency) -> Result<space::Population> {
    std::vector<double> cost(designs.size());
    std::vector<double> quality(designs.size());
    if (auto done = latency.evaluate(designs, cost); !done)
      return tl::unexpected(std::move(done.error()));
    if (auto done = accuracy.evaluate(designs, quality); !done)
      return tl::unexpected(std::move(done.error()));
    return best_designs(designs, cost, quality);
  };
  return actions;
}

/// Designs to measure, in random order: those of the table that the target knows.
Result<space::Population> draw_samples(const space::DesignTable& table, const space::Source& target,
                                       const OneProxyRequest& request) {
  std::vector<double> latency_ms(table.designs.size());
  if (auto done = target.evaluate(table.designs, latency_ms); !done)
    return tl::unexpected(std::move(done.error()));
  const std::vector<std::vector<double>> columns = {std::move(latency_ms)};
  const auto rows = complete_rows(columns);
  const auto sample = sample_rows(
      rows, std::max(request.options.samples, std::min(request.most_samples, rows.size())),
      request.seed, "designs that the target knows");
  if (!sample) return tl::unexpected(sample.error());
  return pick(table.designs, *sample);
}

}  // namespace

Result<OneProxyReport> run_one_proxy(const OneProxyRequest& request) {
  const auto table = read_device_table(request.table, request.space, {request.proxy});
  if (!table) return tl::unexpected(table.error());
  const auto& space = *table->space;
  const auto proxy = transfer::LinearProxy::fit(*table, 0);
  if (!proxy) return tl::unexpected(proxy.error());
  const auto target = open_numbers(request, space, request.target, space::CellRule::positive);
  if (!target) return tl::unexpected(target.error());
  const auto accuracy = open_numbers(request, space, request.accuracy, space::CellRule::any);
  if (!accuracy) return tl::unexpected(accuracy.error());
  const auto samples = draw_samples(*table, **target, request);
  if (!samples) return tl::unexpected(samples.error());
  auto result =
      transfer::fit_one_proxy(*proxy, **accuracy, *samples,
                              actions_on(table->designs, **accuracy, **target), request.options);
  if (!result) return tl::unexpected(std::move(result.error()));
  return OneProxyReport{
      .space = &space, .result = *std::move(result), .threshold = request.options.threshold};
}

}  // namespace fleetfit::app
