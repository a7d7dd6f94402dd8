#include "fleetfit/learned/synthetic_devices.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "fleetfit/core/random.h"

namespace fleetfit::learned {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr std::size_t kLeastRows = 50;
constexpr double kSibling = 0.95;   // correlation from which a device says nearly all of another
constexpr double kMostTilt = 0.35;  // of the spread over designs that comes from the parents
constexpr double kRidge = 1e-3;     // relative to the number of rows, of standardised columns

bool is_complete(const space::DesignTable& table, std::span<const std::size_t> devices,
                 std::size_t row) {
  return std::ranges::none_of(
      devices, [&](std::size_t device) { return std::isnan(table.values[device][row]); });
}

std::vector<std::size_t> rows_to_learn_from(const space::DesignTable& table,
                                            std::span<const std::size_t> devices,
                                            const SyntheticOptions& options) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < table.designs.size(); ++row)
    if (is_complete(table, devices, row)) rows.push_back(row);
  if (rows.size() > options.samples) {
    core::Random(options.seed).split("rows").shuffle(rows);
    rows.resize(options.samples);
  }
  return rows;
}

/// Mean 0 and standard deviation 1 where there is any.
struct Standard {
  Vector mean;
  Vector inverse_spread;

  explicit Standard(const Matrix& columns) : mean(columns.colwise().mean()) {
    const auto rows = static_cast<double>(columns.rows());
    const Vector variance =
        (columns.rowwise() - mean.transpose()).colwise().squaredNorm().transpose() / rows;
    inverse_spread =
        variance.unaryExpr([](double value) { return value > 1e-18 ? 1 / std::sqrt(value) : 0.0; });
  }

  Matrix apply(const Matrix& columns) const {
    return (columns.rowwise() - mean.transpose()) * inverse_spread.asDiagonal();
  }
};

Vector ridge_weights(const Matrix& inputs, const Vector& target) {
  const double ridge = kRidge * static_cast<double>(inputs.rows());
  const Matrix gram =
      inputs.transpose() * inputs + ridge * Matrix::Identity(inputs.cols(), inputs.cols());
  return gram.ldlt().solve(inputs.transpose() * target);
}

/// Columns of the devices that say something about `device` without being nearly the same; all
/// others if there are none.
Matrix strangers_of(const Matrix& devices, Eigen::Index device) {
  const auto rows = static_cast<double>(devices.rows());
  std::vector<Eigen::Index> others;
  std::vector<Eigen::Index> strangers;
  for (Eigen::Index i = 0; i < devices.cols(); ++i) {
    if (i == device) continue;
    others.push_back(i);
    if (devices.col(i).dot(devices.col(device)) / rows < kSibling) strangers.push_back(i);
  }
  return devices(Eigen::all, strangers.empty() ? others : strangers);
}

/// How a device differs from what other devices tell about it, in logarithms, as a share of their
/// spread over all designs: networks that all take about the same time differ little in everything.
struct Peculiarity {
  Vector tilts;
  double noise = 0;
  double spread = 0;
};

Peculiarity peculiarity_of(const Matrix& devices, const Matrix& counts, Eigen::Index device,
                           double spread) {
  const Matrix strangers = strangers_of(devices, device);
  Vector rest = devices.col(device);
  rest -= strangers * ridge_weights(strangers, rest);
  Peculiarity found{.tilts = ridge_weights(counts, rest), .spread = spread};
  rest -= counts * found.tilts;
  found.noise = std::sqrt(rest.squaredNorm() / static_cast<double>(rest.size()));
  return found;
}

double normal_of(std::uint64_t key, std::uint64_t index) {
  const double radius = 1 - core::unit_interval(core::mix(key, 2 * index));  // not 0
  const double angle = 2 * std::numbers::pi * core::unit_interval(core::mix(key, 2 * index + 1));
  return std::sqrt(-2 * std::log(radius)) * std::cos(angle);
}

Status check(const space::DesignTable& table, std::span<const std::size_t> devices) {
  if (devices.size() < 3) {
    return refuse(fmt::format("{}: synthetic devices need three real ones, there are {}",
                              table.name, devices.size()));
  }
  for (const auto device : devices) {
    assert(device < table.columns.size());
    if (std::ranges::count(devices, device) > 1) {
      return refuse(
          fmt::format("{}: the device '{}' is given twice", table.name, table.columns[device]));
    }
  }
  return {};
}

Matrix logarithms(const space::DesignTable& table, std::span<const std::size_t> devices,
                  const std::vector<std::size_t>& rows) {
  Matrix logs(rows.size(), devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j)
      logs(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(i)) =
          std::log(table.values[devices[i]][rows[j]]);
  return logs;
}

/// The encoding "counts" of all designs of the table, row by row.
std::vector<double> encode_counts(const space::DesignTable& table, std::size_t encoding) {
  const auto width = table.space->encodings()[encoding].features.size();
  std::vector<double> counts(table.designs.size() * width);
  table.space->encode(table.designs, encoding, counts);
  return counts;
}

Matrix some_rows(const std::vector<double>& values, std::size_t width,
                 const std::vector<std::size_t>& rows) {
  Matrix picked(rows.size(), width);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < width; ++j)
      picked(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
          values[rows[i] * width + j];
  return picked;
}

double deviation(const Vector& values) {
  return std::sqrt((values.array() - values.mean()).square().mean());
}

}  // namespace

struct SyntheticDevices::Parts {
  SyntheticOptions options = {};
  std::vector<std::vector<double>> logs = {};  // by device and row of the table
  std::vector<double> counts = {};             // by row of the table, standardised
  std::size_t kinds = 0;
  Matrix count_correlations = {};
  std::vector<Peculiarity> peculiarities = {};
  double scale_spread = 0;

  // A sum of what real devices show, with random weights, goes together as theirs do.
  std::vector<double> draw_tilts(core::Random& random, double spread) const {
    Vector tilts = Vector::Zero(static_cast<Eigen::Index>(kinds));
    const double share =
        options.tilt * random.uniform() / std::sqrt(static_cast<double>(peculiarities.size()));
    for (const auto& real : peculiarities) tilts += share * random.normal() * real.tilts;
    const double tilted = std::sqrt(std::max(0.0, tilts.dot(count_correlations * tilts)));
    tilts *= spread * (tilted > kMostTilt ? kMostTilt / tilted : 1);
    return {tilts.begin(), tilts.end()};
  }
};

SyntheticDevices::SyntheticDevices(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
SyntheticDevices::SyntheticDevices(SyntheticDevices&&) noexcept = default;
SyntheticDevices& SyntheticDevices::operator=(SyntheticDevices&&) noexcept = default;
SyntheticDevices::~SyntheticDevices() = default;

Result<SyntheticDevices> SyntheticDevices::learn(const space::DesignTable& table,
                                                 std::span<const std::size_t> devices,
                                                 const SyntheticOptions& options) {
  FLEETFIT_TRY(check(table, devices));
  const auto rows = rows_to_learn_from(table, devices, options);
  if (rows.size() < kLeastRows) {
    return refuse(
        fmt::format("{}: synthetic devices need {} designs that are known on all {} real "
                    "ones, there are {}",
                    table.name, kLeastRows, devices.size(), rows.size()));
  }
  FLEETFIT_ASSIGN(const auto encoding, table.space->find_encoding("counts"));
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  parts->kinds = table.space->encodings()[encoding].features.size();
  parts->counts = encode_counts(table, encoding);
  const Matrix counts = some_rows(parts->counts, parts->kinds, rows);
  const Standard count_scale(counts);
  for (std::size_t i = 0; i < parts->counts.size(); ++i) {
    const auto kind = static_cast<Eigen::Index>(i % parts->kinds);
    parts->counts[i] =
        (parts->counts[i] - count_scale.mean[kind]) * count_scale.inverse_spread[kind];
  }
  const Matrix logs = logarithms(table, devices, rows);
  const Standard log_scale(logs);
  parts->scale_spread = deviation(log_scale.mean);
  const Matrix standard_logs = log_scale.apply(logs);
  const Matrix standard_counts = count_scale.apply(counts);
  parts->count_correlations =
      standard_counts.transpose() * standard_counts / static_cast<double>(rows.size());
  for (Eigen::Index i = 0; i < logs.cols(); ++i) {
    const double spread = deviation(logs.col(i));
    parts->peculiarities.push_back(peculiarity_of(standard_logs, standard_counts, i, spread));
  }
  for (const auto device : devices) {
    parts->logs.push_back(table.values[device]);
    for (auto& value : parts->logs.back()) value = std::log(value);
  }
  return SyntheticDevices(std::move(parts));
}

SyntheticDevice SyntheticDevices::device(std::uint64_t index) const {
  const auto& options = parts_->options;
  auto random = core::Random(options.seed).split("device").split(index);
  const auto most = std::min(std::max<std::size_t>(options.most_parents, 1), parts_->logs.size());
  const auto chosen = random.sample(parts_->logs.size(), 1 + random.below(most));
  SyntheticDevice made{.key = random.next()};
  double total = 0;
  for (const auto parent : chosen) {
    // Normalised exponentials: all mixtures are alike likely.
    made.parents.push_back({static_cast<std::size_t>(parent), -std::log(1 - random.uniform())});
    total += made.parents.back().weight;
  }
  for (auto& parent : made.parents) parent.weight /= total;
  made.log_scale = options.scale * parts_->scale_spread * random.normal();
  double spread = 0;
  for (const auto& parent : made.parents)
    spread += parent.weight * parts_->peculiarities[parent.device].spread;
  made.tilts = parts_->draw_tilts(random, spread);
  const auto main = std::ranges::max_element(made.parents, {}, &SyntheticDevice::Parent::weight);
  made.noise =
      spread * options.noise * parts_->peculiarities[main->device].noise * random.uniform();
  return made;
}

void SyntheticDevices::latencies_ms(const SyntheticDevice& device,
                                    std::span<const std::size_t> rows,
                                    std::span<double> out) const {
  assert(rows.size() == out.size() && device.tilts.size() == parts_->kinds);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    double log = device.log_scale;
    for (const auto& parent : device.parents)
      log += parent.weight * parts_->logs[parent.device][row];
    const auto counts = std::span(parts_->counts).subspan(row * parts_->kinds, parts_->kinds);
    log = std::inner_product(counts.begin(), counts.end(), device.tilts.begin(), log);
    out[i] = std::exp(log + device.noise * normal_of(device.key, row));
  }
}

}  // namespace fleetfit::learned
