#include "fleetfit/transfer/one_proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "fleetfit/search/pareto.h"

namespace fleetfit::transfer {
namespace {

class ProxySource final : public space::Source {
 public:
  explicit ProxySource(const LinearProxy& proxy) : proxy_(proxy) {}
  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    proxy_.price(designs, out);
    return {};
  }

 private:
  const LinearProxy& proxy_;
};

/// Designs that could be measured, with their latency.
struct Known {
  space::Population designs;
  std::vector<double> latency_ms;

  explicit Known(std::size_t genes) : designs(genes) {}
};

Result<Known> measure_known(const OneProxyActions& actions, space::DesignBatch designs) {
  FLEETFIT_ASSIGN(const auto latency_ms, actions.measure(designs));
  if (latency_ms.size() != designs.size())
    return fail(ErrorCode::internal, "not as many latencies as designs were measured");
  Known known(designs.genes());
  for (std::size_t i = 0; i < designs.size(); ++i) {
    if (std::isnan(latency_ms[i])) continue;
    known.designs.add(designs[i]);
    known.latency_ms.push_back(latency_ms[i]);
  }
  return known;
}

void append(const Known& more, Known& known) {
  for (std::size_t i = 0; i < more.latency_ms.size(); ++i) {
    known.designs.add(more.designs.batch()[i]);
    known.latency_ms.push_back(more.latency_ms[i]);
  }
}

/// An interval about the rank correlation of samples that were set aside.
SrccEstimate held_out_estimate(const AdaptReport& report) {
  SrccEstimate estimate{.srcc = report.held_out_srcc, .samples = report.measurements};
  estimate.ci95 = srcc_interval(estimate.srcc, estimate.samples);
  return estimate;
}

/// The first part of the algorithm: from samples to a source of latency.
class Checking {
 public:
  Checking(const LinearProxy& proxy, const OneProxyOptions& options, std::size_t genes)
      : proxy_(proxy), options_(options), known_(genes) {}

  const Known& known() const { return known_; }

  /// True if what is known is enough.
  Result<bool> look_at(const Known& more, OneProxyResult& result) {
    append(more, known_);
    std::vector<double> said(known_.latency_ms.size());
    proxy_.price(known_.designs, said);
    FLEETFIT_ASSIGN(const auto agreement, estimate_srcc(said, known_.latency_ms));
    result.steps.push_back({.samples = said.size(), .proxy = agreement});
    result.adapted.reset();
    result.reaches_threshold = compare(agreement, options_.threshold) == Verdict::holds;
    if (result.reaches_threshold) return true;
    FLEETFIT_ASSIGN(auto adapted, adapt_to_known());
    const auto held_out = held_out_estimate(adapted.report());
    result.steps.back().adapted = held_out;
    result.reaches_threshold = held_out.srcc >= options_.threshold;
    if (!adapted.report().keeps_proxy) result.adapted = std::move(adapted);
    return result.reaches_threshold;
  }

 private:
  Result<AdaptedProxy> adapt_to_known() const {
    const auto third = static_cast<int>(known_.latency_ms.size() / 3);
    return adapt(proxy_, {.designs = known_.designs, .latency_ms = known_.latency_ms},
                 {.validation = std::min(options_.validation, std::max(1, third))});
  }

  const LinearProxy& proxy_;
  const OneProxyOptions& options_;
  Known known_;
};

Status check_step(const OneProxyOptions& options, std::size_t samples) {
  if (options.samples < 4 || options.samples > samples) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} samples were asked for, expected 4 to {}, as many as there are",
                            options.samples, samples));
  }
  if (options.step == 0) return fail(ErrorCode::invalid_input, "a step of 0 samples");
  return {};
}

using DesignSet = std::set<std::vector<space::Choice>>;

DesignSet set_of(const space::Population& designs) {
  DesignSet set;
  for (std::size_t i = 0; i < designs.size(); ++i) {
    const auto design = designs.batch()[i];
    set.emplace(design.begin(), design.end());
  }
  return set;
}

/// Designs of `more` that `designs` does not hold are added to it.
void add_new(const space::Population& more, space::Population& designs) {
  auto held = set_of(designs);
  for (std::size_t i = 0; i < more.size(); ++i) {
    const auto design = more.batch()[i];
    if (held.emplace(design.begin(), design.end()).second) designs.add(design);
  }
}

/// If the adapted proxy is not known to order designs as the target does, what the proxy itself
/// thinks best is looked at, too.
Result<space::Population> search_designs(const LinearProxy& proxy, const OneProxyActions& actions,
                                         const OneProxyResult& result) {
  if (!result.adapted) return actions.search(*proxy_source(proxy));
  auto found = actions.search(*adapted_source(*result.adapted));
  if (!found || result.reaches_threshold) return found;
  auto by_proxy = actions.search(*proxy_source(proxy));
  if (!by_proxy) return by_proxy;
  add_new(*by_proxy, *found);
  return found;
}

/// Designs that were measured, with their accuracy; those of which none is known are left out.
Result<std::vector<ParetoDesign>> rate(const Known& known, const space::Source& accuracy) {
  std::vector<double> quality(known.latency_ms.size());
  FLEETFIT_TRY(accuracy.evaluate(known.designs, quality));
  std::vector<ParetoDesign> designs;
  for (std::size_t i = 0; i < quality.size(); ++i) {
    if (std::isnan(quality[i])) continue;
    const auto design = known.designs.batch()[i];
    designs.push_back({.design = {design.begin(), design.end()},
                       .latency_ms = known.latency_ms[i],
                       .accuracy = quality[i]});
  }
  return designs;
}

Status search_and_measure(const LinearProxy& proxy, const space::Source& accuracy,
                          const OneProxyActions& actions, Known samples, OneProxyResult& result) {
  FLEETFIT_ASSIGN(const auto found, search_designs(proxy, actions, result));
  FLEETFIT_ASSIGN(const auto measured, measure_known(actions, found));
  result.measurements += found.size();
  append(measured, samples);  // a sample may be among the best by luck
  FLEETFIT_ASSIGN(auto designs, rate(samples, accuracy));
  result.pareto = drop_dominated(std::move(designs));
  const auto searched = set_of(found);
  const auto kept = std::ranges::count_if(
      result.pareto, [&](const ParetoDesign& one) { return searched.contains(one.design); });
  result.dropped = found.size() - static_cast<std::size_t>(kept);
  return {};
}

}  // namespace

std::unique_ptr<const space::Source> proxy_source(const LinearProxy& proxy) {
  return std::make_unique<ProxySource>(proxy);
}

std::vector<ParetoDesign> drop_dominated(std::vector<ParetoDesign> designs) {
  std::vector<double> rows;
  for (const auto& design : designs) rows.insert(rows.end(), {design.latency_ms, -design.accuracy});
  std::vector<ParetoDesign> left;
  for (const std::size_t i : search::pareto_set({rows, 2})) left.push_back(std::move(designs[i]));
  return left;
}

Result<OneProxyResult> fit_one_proxy(const LinearProxy& proxy, const space::Source& accuracy,
                                     space::DesignBatch samples, const OneProxyActions& actions,
                                     const OneProxyOptions& options) {
  FLEETFIT_TRY(check_step(options, samples.size()));
  OneProxyResult result;
  Checking checking(proxy, options, samples.genes());
  bool is_enough = false;
  while (!is_enough && result.measurements < samples.size()) {
    const std::size_t wanted = result.measurements == 0 ? options.samples : options.step;
    const std::size_t count = std::min(wanted, samples.size() - result.measurements);
    FLEETFIT_ASSIGN(const auto more,
                    measure_known(actions, samples.part(result.measurements, count)));
    result.measurements += count;
    FLEETFIT_ASSIGN(is_enough, checking.look_at(more, result));
  }
  FLEETFIT_TRY(search_and_measure(proxy, accuracy, actions, checking.known(), result));
  return result;
}

}  // namespace fleetfit::transfer
