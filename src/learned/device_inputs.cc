#include "fleetfit/learned/device_inputs.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "fleetfit/core/statistics.h"

namespace fleetfit::learned {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Square =
    Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

constexpr double kMostSize = 1e15;  // of any feature: what is larger is no measurement
constexpr float kWidest = 8;        // of an input: what is farther out teaches the networks nothing

tl::unexpected<Error> wrong(const InputColumn& column, std::string_view problem) {
  return refuse(fmt::format("feature {}: {}", column.name, problem));
}

Result<double> transformed(const InputColumn& column, double value) {
  if (std::isnan(value)) return value;
  if (!(std::abs(value) <= kMostSize)) return wrong(column, fmt::format("{} is too large", value));
  if (!column.is_logarithm) return value;
  if (!(value >= 1 / kMostSize)) return wrong(column, fmt::format("{} is not positive", value));
  return std::log(value);
}

/// Of the references that are there; 0 if there are none.
double level_of(std::span<const InputColumn> columns, std::span<const double> values) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].is_reference) continue;
    sum += values[i];
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

Status check_column(const InputColumn& column) {
  for (const double number : {column.middle, column.mean, column.scale})
    if (!std::isfinite(number)) return wrong(column, "a number is not finite");
  if (!(column.scale > 0)) return wrong(column, "the scale is not positive");
  if (column.is_reference && !column.is_logarithm)
    return wrong(column, "a reference latency is taken by its logarithm");
  return {};
}

Status check_square(std::span<const double> numbers, std::size_t size, std::string_view name) {
  if (numbers.size() != size * size) {
    return refuse(fmt::format("{}: {} numbers, expected {}", name, numbers.size(), size * size));
  }
  if (!std::ranges::all_of(numbers, [](double one) { return std::isfinite(one); }))
    return refuse(fmt::format("{}: a number is not finite", name));
  return {};
}

}  // namespace

DeviceInputs::DeviceInputs(Parts parts) : parts_(std::move(parts)) {
  references_ = static_cast<std::size_t>(
      std::ranges::count(parts_.columns, true, &InputColumn::is_reference));
}

Result<DeviceInputs> DeviceInputs::make(Parts parts) {
  if (parts.columns.empty()) return refuse("there are no features");
  for (const auto& column : parts.columns) FLEETFIT_TRY(check_column(column));
  const std::size_t size = parts.columns.size();
  FLEETFIT_TRY(check_square(parts.covariance, size, "covariance"));
  FLEETFIT_TRY(check_square(parts.familiarity, size, "familiarity"));
  if (!(parts.usual_distance > 0) || !std::isfinite(parts.usual_distance))
    return refuse("usual_distance is not positive");
  return DeviceInputs(std::move(parts));
}

/// The missing ones as they are expected to be beside those that are there, if all are normal.
Status DeviceInputs::fill_in(std::span<double> values) const {
  std::vector<Index> there;
  std::vector<Index> missing;
  for (std::size_t i = 0; i < values.size(); ++i)
    (std::isnan(values[i]) ? missing : there).push_back(static_cast<Index>(i));
  if (missing.empty()) return {};
  const auto is_reference = [&](Index i) {
    return parts_.columns[static_cast<std::size_t>(i)].is_reference;
  };
  if (there.empty() || (has_references() && std::ranges::none_of(there, is_reference))) {
    return refuse(there.empty() ? "all features are missing"
                                : "no reference latency is there, so nothing says how fast it is");
  }
  const auto size = static_cast<Index>(values.size());
  const Square covariance(parts_.covariance.data(), size, size);
  MatrixXd among(std::ssize(there), std::ssize(there));
  VectorXd apart(std::ssize(there));
  for (Index a = 0; a < std::ssize(there); ++a) {
    const auto column = there[static_cast<std::size_t>(a)];
    apart[a] = values[static_cast<std::size_t>(column)] -
               parts_.columns[static_cast<std::size_t>(column)].middle;
    for (Index b = 0; b < std::ssize(there); ++b)
      among(a, b) = covariance(column, there[static_cast<std::size_t>(b)]);
  }
  among.diagonal().array() += 1e-3 * (among.diagonal().mean() + 1e-9);
  const VectorXd weights = among.ldlt().solve(apart);
  for (const auto column : missing) {
    double value = parts_.columns[static_cast<std::size_t>(column)].middle;
    for (Index a = 0; a < std::ssize(there); ++a)
      value += covariance(column, there[static_cast<std::size_t>(a)]) * weights[a];
    values[static_cast<std::size_t>(column)] = value;
  }
  return {};
}

Result<DeviceVector> DeviceInputs::read(std::span<const double> values) const {
  if (values.size() != size()) {
    return refuse(fmt::format("{} features, expected {}", values.size(), size()));
  }
  std::vector<double> numbers(size());
  DeviceVector device;
  for (std::size_t i = 0; i < size(); ++i) {
    FLEETFIT_ASSIGN(const auto number, transformed(parts_.columns[i], values[i]));
    numbers[i] = number;
    if (std::isnan(number)) ++device.missing;
  }
  FLEETFIT_TRY(fill_in(numbers));
  const double level = level_of(parts_.columns, numbers);
  for (std::size_t i = 0; i < size(); ++i) {
    const auto& column = parts_.columns[i];
    const double relative = numbers[i] - (column.is_reference ? level : 0);
    device.inputs.push_back(static_cast<float>((relative - column.mean) / column.scale));
  }
  const std::size_t missing = device.missing;
  device = at(std::move(device.inputs), level);
  device.missing = missing;
  return device;
}

DeviceVector DeviceInputs::at(std::vector<float> inputs, double level) const {
  const auto count = static_cast<Index>(size());
  for (float& input : inputs) input = std::clamp(input, -kWidest, kWidest);
  const VectorXd row = Eigen::Map<const Eigen::VectorXf>(inputs.data(), count).cast<double>();
  const Square familiarity(parts_.familiarity.data(), count, count);
  return {.inputs = std::move(inputs),
          .level = level,
          .distance = std::max(row.dot(familiarity * row), 0.0)};
}

namespace {

/// Features of known devices after ln, missing ones as the mean of their column.
struct Transformed {
  std::vector<InputColumn> columns;
  MatrixXd values;  // device x feature
};

bool wants_logarithm(const KnownFeatures& known, std::size_t column) {
  if (known.is_reference[column]) return true;
  double low = INFINITY;
  double high = 0;
  for (std::size_t device = 0; device < known.devices(); ++device) {
    const double value = known.row(device)[column];
    if (std::isnan(value)) continue;
    if (!(value > 0)) return false;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  constexpr double kManyTimes = 3;
  return high > kManyTimes * low;
}

Status transform_column(const KnownFeatures& known, std::size_t number, Transformed& all) {
  auto& column = all.columns[number];
  double sum = 0;
  std::size_t there = 0;
  std::vector<double> values;
  for (std::size_t device = 0; device < known.devices(); ++device) {
    FLEETFIT_ASSIGN(const auto value, transformed(column, known.row(device)[number]));
    values.push_back(value);
    if (std::isnan(value)) continue;
    sum += value;
    ++there;
  }
  if (there == 0) return wrong(column, "no known device has it");
  column.middle = sum / static_cast<double>(there);
  for (std::size_t device = 0; device < values.size(); ++device) {
    all.values(static_cast<Index>(device), static_cast<Index>(number)) =
        std::isnan(values[device]) ? column.middle : values[device];
  }
  return {};
}

Result<Transformed> transform_all(const KnownFeatures& known) {
  Transformed all{
      .columns = {},
      .values = MatrixXd(static_cast<Index>(known.devices()), static_cast<Index>(known.columns()))};
  for (std::size_t i = 0; i < known.columns(); ++i) {
    all.columns.push_back({.name = known.names[i],
                           .is_reference = known.is_reference[i],
                           .is_logarithm = wants_logarithm(known, i)});
    FLEETFIT_TRY(transform_column(known, i, all));
  }
  return all;
}

std::vector<double> numbers_of(const MatrixXd& symmetric) {
  return {symmetric.data(), symmetric.data() + symmetric.size()};
}

/// Takes levels and means away and divides by scales; gives the inputs. References share one scale,
/// so that one that hardly differs between devices does not count as much as one that does.
MatrixXd scale_columns(Transformed& all) {
  MatrixXd inputs = all.values;
  const Index references = std::ranges::count(all.columns, true, &InputColumn::is_reference);
  for (Index device = 0; device < inputs.rows(); ++device) {
    const VectorXd row = inputs.row(device);
    const double level =
        level_of(all.columns, std::span(row.data(), static_cast<std::size_t>(row.size())));
    for (Index i = 0; i < inputs.cols(); ++i)
      if (all.columns[static_cast<std::size_t>(i)].is_reference) inputs(device, i) -= level;
  }
  double squares = 0;
  for (Index i = 0; i < inputs.cols(); ++i) {
    auto& column = all.columns[static_cast<std::size_t>(i)];
    column.mean = inputs.col(i).mean();
    inputs.col(i).array() -= column.mean;
    const double variance = inputs.col(i).squaredNorm() / static_cast<double>(inputs.rows());
    column.scale = variance > 1e-12 ? std::sqrt(variance) : 1;
    if (column.is_reference) squares += variance / static_cast<double>(references);
  }
  for (Index i = 0; i < inputs.cols(); ++i) {
    auto& column = all.columns[static_cast<std::size_t>(i)];
    if (column.is_reference) column.scale = squares > 1e-12 ? std::sqrt(squares) : 1;
    inputs.col(i) /= column.scale;
  }
  return inputs;
}

MatrixXd familiarity_of(const MatrixXd& inputs, double ridge) {
  MatrixXd squares = inputs.transpose() * inputs;
  const double typical = squares.trace() / static_cast<double>(inputs.rows());
  squares.diagonal().array() += ridge * typical + 1e-9;
  return squares.ldlt().solve(MatrixXd::Identity(squares.rows(), squares.cols()));
}

/// Of each device from all others: nine of ten are nearer than this.
double usual_distance_of(const MatrixXd& inputs, const MatrixXd& familiarity) {
  std::vector<double> distances;
  for (Index device = 0; device < inputs.rows(); ++device) {
    const VectorXd row = inputs.row(device);
    const double with = row.dot(familiarity * row);
    distances.push_back(with / std::max(1 - with, 1e-3));  // without the device itself
  }
  return std::max(core::quantile(distances, 0.9).value(), 1e-3);
}

}  // namespace

Result<DeviceInputs> fit_device_inputs(const KnownFeatures& known, double ridge) {
  constexpr std::size_t kFewest = 3;
  if (known.devices() < kFewest) {
    return refuse(fmt::format("{} devices are too few to learn from, at least {} are needed",
                              known.devices(), kFewest));
  }
  auto all = transform_all(known);
  FLEETFIT_TRY(all);
  const MatrixXd centred = all->values.rowwise() - all->values.colwise().mean();
  const MatrixXd covariance = centred.transpose() * centred / static_cast<double>(centred.rows());
  const MatrixXd inputs = scale_columns(*all);
  const MatrixXd familiarity = familiarity_of(inputs, ridge);
  return DeviceInputs::make({.columns = std::move(all->columns),
                             .covariance = numbers_of(covariance),
                             .familiarity = numbers_of(familiarity),
                             .usual_distance = usual_distance_of(inputs, familiarity)});
}

}  // namespace fleetfit::learned
