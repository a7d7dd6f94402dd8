#include "fleetfit/transfer/last_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "transfer/correction.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using predict::DenseLayer;
using predict::DenseNetwork;
using predict::Transform;

constexpr double kRoom = 2;  // factor by which answers may leave the range of what was measured

std::vector<float> apply_layer(const DenseLayer& layer, std::span<const float> in) {
  std::vector<float> out(layer.bias);
  for (std::size_t i = 0; i < layer.inputs; ++i)
    for (std::size_t j = 0; j < layer.outputs; ++j)
      out[j] += in[i] * layer.weights[i * layer.outputs + j];
  for (auto& value : out) value = std::max(value, 0.0F);
  return out;
}

/// What the layer before the last gives for each row.
MatrixXd hidden_values(const DenseNetwork::Parts& parts, const predict::MatrixView& rows) {
  MatrixXd hidden(static_cast<Index>(rows.rows()), static_cast<Index>(parts.layers.back().inputs));
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    std::vector<float> values(rows.columns);
    predict::scale_inputs(parts.inputs, rows.row(row), values);
    for (std::size_t i = 0; i + 1 < parts.layers.size(); ++i)
      values = apply_layer(parts.layers[i], values);
    for (std::size_t j = 0; j < values.size(); ++j)
      hidden(static_cast<Index>(row), static_cast<Index>(j)) = values[j];
  }
  return hidden;
}

/// The number that the output's transform makes a latency of.
double before_transform(Transform transform, double latency_ms) {
  return transform == Transform::logarithm ? std::log(latency_ms) : latency_ms;
}

/// Contributions to the number before the transform: hidden value x weight x scale.
MatrixXd contributions(const DenseNetwork::Parts& parts, const MatrixXd& hidden) {
  MatrixXd result = hidden;
  for (Index j = 0; j < result.cols(); ++j) {
    result.col(j) *= parts.output.scale *
                     static_cast<double>(parts.layers.back().weights[static_cast<std::size_t>(j)]);
  }
  return result;
}

Status check(const DenseNetwork& proxy, const predict::MatrixView& rows,
             std::span<const double> latency_ms) {
  if (rows.columns != proxy.features() || rows.rows() != latency_ms.size()) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{} rows of {} features for {} latencies; the network takes {} features",
                    rows.rows(), rows.columns, latency_ms.size(), proxy.features()));
  }
  for (std::size_t i = 0; i < latency_ms.size(); ++i) {
    if (std::isfinite(latency_ms[i]) && latency_ms[i] > 0) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("measurement {} is {} ms, expected a positive "
                            "number",
                            i, latency_ms[i]));
  }
  return {};
}

/// The proxy with (alpha + b) x weight in its last layer. `said` holds what the proxy's last layer
/// made of each row, `target` what it should have made.
DenseNetwork::Parts adapted_parts(const DenseNetwork& proxy, const Correction& correction) {
  auto parts = proxy.parts();
  auto& last = parts.layers.back();
  for (std::size_t j = 0; j < last.weights.size(); ++j) {
    const double factor = correction.alpha + correction.coefficients[static_cast<Index>(j)];
    last.weights[j] = static_cast<float>(factor * static_cast<double>(last.weights[j]));
  }
  last.bias.front() = static_cast<float>(correction.alpha * static_cast<double>(last.bias.front()));
  parts.output.offset = correction.constant + correction.alpha * parts.output.offset;
  return parts;
}

}  // namespace

Result<AdaptedNetwork> adapt_last_layer(const DenseNetwork& proxy, const predict::MatrixView& rows,
                                        std::span<const double> latency_ms,
                                        const AdaptOptions& options) {
  FLEETFIT_TRY(check(proxy, rows, latency_ms));
  const auto& parts = proxy.parts();
  const auto count = static_cast<Index>(latency_ms.size());
  const std::vector<MatrixXd> bases = {contributions(parts, hidden_values(parts, rows))};
  const double constant =
      parts.output.offset + parts.output.scale * static_cast<double>(parts.layers.back().bias[0]);
  const VectorXd said = bases[0].rowwise().sum().array() + constant;
  VectorXd target(count);
  for (Index i = 0; i < count; ++i) {
    target[i] = before_transform(parts.output.transform, latency_ms[static_cast<std::size_t>(i)]);
  }
  FLEETFIT_ASSIGN(auto correction,
                  fit_correction({.proxy = said, .target = target, .bases = bases},
                                 {.held_out = options.validation, .lambdas = options.lambdas}));
  if (correction.keeps_proxy && parts.output.transform == Transform::logarithm) {
    correction.alpha = 1;  // a common factor of latencies is a difference of their logarithms
    correction.constant = (target - said).mean();
  }
  auto adapted = adapted_parts(proxy, correction);
  const auto [low, high] = std::ranges::minmax(latency_ms);
  adapted.output.min = low / kRoom;
  adapted.output.max = high * kRoom;
  FLEETFIT_ASSIGN(auto network, DenseNetwork::make(std::move(adapted)));
  return AdaptedNetwork{
      .network = std::move(network),
      .lambda = correction.lambda,
      .held_out_srcc = correction.held_out_srcc,
      .proxy_srcc = correction.proxy_srcc,
      .keeps_proxy = correction.keeps_proxy,
      .changed = static_cast<std::size_t>((correction.coefficients.array() != 0).count())};
}

}  // namespace fleetfit::transfer
