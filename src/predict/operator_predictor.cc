#include "fleetfit/predict/operator_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fleetfit/core/plausible.h"
#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

// A kernel may leave the range of what was measured by a fifth before it is worth mention.
const double kTolerance = std::log(1.2);
constexpr double kLeastPriceMs = 1e-6;
// What people know a kernel by.
constexpr std::array<std::string_view, 9> kDescribing = {
    "flops",         "input_height", "input_width", "input_channels", "output_channels",
    "kernel_height", "stride",       "groups",      "filters"};

struct Nearest {
  const std::string* kind = nullptr;
  const KindModel::Known* known = nullptr;
  double away = std::numeric_limits<double>::infinity();
};

void look_for_nearer(const KindModel& kind, std::span<const double> values, std::size_t features,
                     Nearest& nearest) {
  for (const auto& known : kind.known) {
    const double away =
        log_distance(values.first(features), std::span(known.features).first(features));
    if (away < nearest.away) nearest = {.kind = &kind.kind, .known = &known, .away = away};
  }
}

std::string describe(const std::string& kind, std::span<const double> values) {
  const auto& names = cost::feature_names(kind);
  std::string text = kind;
  for (const std::string_view wanted : kDescribing) {
    const auto found = std::ranges::find(names, wanted);
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (index >= values.size()) continue;
    const double value = values[index];
    if (value > 0) text += fmt::format(", {} {:.6g}", wanted, value);
  }
  return text;
}

Unpriced unpriced(std::size_t kernel, const std::string& kind, std::string reason,
                  const Nearest& nearest) {
  Unpriced entry{.kernel = kernel, .kind = kind, .reason = std::move(reason)};
  if (nearest.known != nullptr) {
    entry.nearest = describe(*nearest.kind, nearest.known->features);
    entry.nearest_ms = nearest.known->ms;
  }
  return entry;
}

// What is needed of each kernel to give the network its interval.
struct Uncertainty {
  double spread = 0;  // as in cross-validation: errors of many kernels cancel each other
  double beyond = 0;  // of guesses: they may all be wrong in the same direction
};

// Prices one network, kind by kind.
class NetworkPricer {
 public:
  NetworkPricer(const OperatorPredictor::Parts& parts,
                std::span<const cost::KernelFeatures> kernels)
      : parts_(parts), kernels_(kernels), uncertainty_(kernels.size()) {
    price_.kernels.resize(kernels.size());
  }

  void price_kind(const KindModel& kind, std::span<const std::size_t> members) {
    const std::size_t columns = kind.low.size();
    std::vector<double> clamped;
    clamped.reserve(members.size() * columns);
    for (const std::size_t i : members)
      clamp_into(values_for(kind, i), kind.low, kind.high, clamped);
    const MatrixView rows{.values = clamped, .columns = columns};
    std::vector<double> prices(members.size());
    kind.model->predict(rows, prices);
    for (std::size_t m = 0; m < members.size(); ++m)
      settle(kind, members[m], prices[m], rows.row(m));
  }

  void price_unknown(std::size_t i) {
    const auto generic = std::span(kernels_[i].values).first(parts_.generic.features());
    const double price = parts_.generic.predict_one(generic);
    look_at(i, price);
    set(i, std::max(price, kLeastPriceMs), {.beyond = parts_.generic_spread90});
    Nearest nearest;
    for (const auto& kind : parts_.kinds)
      look_for_nearer(kind, kernels_[i].values, generic.size(), nearest);
    price_.unpriced.push_back(unpriced(
        i, kernels_[i].kind, "too few kernels of this kind were measured, or none", nearest));
  }

  Result<NetworkPrice> finish() {
    FLEETFIT_TRY(wrong_);
    price_.overhead_ms = parts_.overhead.of(kernels_.size(), sum_of_kernels());
    scale_all(parts_.short_networks.factor(price_.overhead_ms + sum_of_kernels()));
    price_.latency_ms = price_.overhead_ms + sum_of_kernels();
    double spread = 0;
    double beyond = 0;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const double share = price_.kernels[i].ms / price_.latency_ms;
      spread += share * uncertainty_[i].spread;
      beyond += share * uncertainty_[i].beyond;
    }
    price_.interval90 = around(price_.latency_ms, parts_.network_score90 * spread + beyond);
    std::ranges::sort(price_.unpriced, {}, &Unpriced::kernel);
    return std::move(price_);
  }

 private:
  /// Those that the model knows: newer features come after them.
  std::span<const double> values_for(const KindModel& kind, std::size_t i) const {
    return std::span(kernels_[i].values).first(kind.low.size());
  }

  void settle(const KindModel& kind, std::size_t i, double price, std::span<const double> clamped) {
    const auto values = values_for(kind, i);
    const Excess excess = excess_of(values, kind.low, kind.high);
    if (!std::ranges::equal(clamped, values)) price *= growth(kind.guide, clamped, values);
    look_at(i, price);
    const bool known = kind.model->knows(values);
    const double beyond = kind.growth * excess.log + (known ? 0 : kind.spread90);
    set(i, std::max({price, kind.least_ms / 2, kLeastPriceMs}),
        {.spread = kind.spread90, .beyond = beyond});
    if (excess.log <= kTolerance && known) return;
    Nearest nearest;
    look_for_nearer(kind, values, values.size(), nearest);
    price_.unpriced.push_back(unpriced(
        i, kind.kind,
        excess.log > kTolerance ? reason(kind, excess, values) : "the table has no such kernel",
        nearest));
  }

  // Lines that are fitted to many kernels give a small one now and then a little less than nothing,
  // which becomes the least that is known. What is far from any time is no such price.
  void look_at(std::size_t i, double price) {
    if (std::abs(price) <= core::kDayMs || !wrong_) return;
    wrong_ = refuse(fmt::format("kernel {} ({}): the predictor gives it {:g} ms, which is no time",
                                i, kernels_[i].kind, price));
  }

  double sum_of_kernels() const {
    double sum = 0;
    for (const auto& kernel : price_.kernels) sum += kernel.ms;
    return sum;
  }

  void scale_all(double factor) {
    price_.overhead_ms *= factor;
    for (auto& kernel : price_.kernels) {
      kernel.ms *= factor;
      kernel.interval90 = {.low = kernel.interval90.low * factor,
                           .high = kernel.interval90.high * factor};
    }
  }

  static double growth(const LinearModel& guide, std::span<const double> from,
                       std::span<const double> to) {
    const double there = guide.predict_one(from);
    const double here = guide.predict_one(to);
    return there > 0 && here > 0 ? here / there : 1;
  }

  static std::string reason(const KindModel& kind, const Excess& excess,
                            std::span<const double> values) {
    const std::size_t j = excess.feature;
    const bool above = values[j] > kind.high[j];
    return fmt::format("{} {:.6g} lies {} the {:.6g} that were measured",
                       cost::feature_names(kind.kind)[j], values[j], above ? "above" : "below",
                       above ? kind.high[j] : kind.low[j]);
  }

  void set(std::size_t i, double ms, const Uncertainty& uncertainty) {
    price_.kernels[i] = {.ms = ms,
                         .interval90 = around(ms, uncertainty.spread + uncertainty.beyond)};
    uncertainty_[i] = uncertainty;
  }

  const OperatorPredictor::Parts& parts_;
  std::span<const cost::KernelFeatures> kernels_;
  std::vector<Uncertainty> uncertainty_;
  NetworkPrice price_;
  Status wrong_;
};

}  // namespace

double Overhead::of(std::size_t kernels, double kernels_took_ms) const {
  const double full = network_ms + kernel_ms * static_cast<double>(kernels);
  return kernels_took_ms < full_from_ms ? full * kernels_took_ms / full_from_ms : full;
}

double ShortNetworks::factor(double latency_ms) const {
  if (!(latency_ms < below_ms)) return 1;
  return std::pow(std::max(latency_ms, least_ms) / below_ms, power);
}

const KindModel* OperatorPredictor::find(std::string_view kind,
                                         std::span<const double> features) const {
  const auto models = std::ranges::equal_range(parts_.kinds, kind, {}, &KindModel::kind);
  const auto found = std::ranges::find_if(models, [&](const KindModel& model) {
    return std::ranges::all_of(model.when, [&](const auto& c) { return c.holds(features); });
  });
  return found == models.end() ? nullptr : &*found;
}

Result<NetworkPrice> OperatorPredictor::price(std::span<const cost::KernelFeatures> kernels) const {
  std::vector<std::vector<std::size_t>> members(parts_.kinds.size());
  NetworkPricer pricing(parts_, kernels);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (auto checked = check_features(kernels[i]); !checked)
      return core::within(fmt::format("kernel {} ({})", i, kernels[i].kind), checked.error());
    if (const auto* kind = find(kernels[i].kind, kernels[i].values)) {
      members[static_cast<std::size_t>(kind - parts_.kinds.data())].push_back(i);
    } else {
      pricing.price_unknown(i);
    }
  }
  for (std::size_t k = 0; k < members.size(); ++k)
    if (!members[k].empty()) pricing.price_kind(parts_.kinds[k], members[k]);
  return pricing.finish();
}

}  // namespace fleetfit::predict
