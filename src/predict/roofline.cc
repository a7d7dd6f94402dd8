#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fleetfit/predict/analytic.h"
#include "predict/analytic_price.h"
#include "predict/kernel_features.h"
#include "predict/predictor_fields.h"

namespace fleetfit::predict {
namespace {

Status check_efficiency(const RooflineSpecification& s) {
  for (const auto& [kind, share] : s.efficiency) {
    if (share > 0 && share <= 1) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("efficiency of {}: {} is not above 0 and up to 1", kind, share));
  }
  return {};
}

Status read_efficiency(const core::JsonView& json, RooflineSpecification& s) {
  FLEETFIT_ASSIGN(const auto members, json.members());
  for (const auto& [kind, value] : members) {
    FLEETFIT_ASSIGN(s.efficiency[kind], value.as_number());
  }
  return {};
}

nlohmann::ordered_json write_efficiency(const RooflineSpecification& s) { return s.efficiency; }

}  // namespace

core::Fields fields_of(const RooflineSpecification*) {
  using Specification = RooflineSpecification;
  static constexpr core::Field kAll[] = {
      core::field<&Specification::gflops>("gflops").above(0).may_be_missing(),
      core::field<&Specification::gbytes_per_s>("gbytes_per_s").above(0).may_be_missing(),
      core::field<&Specification::kernel_us>("kernel_us").from(0).may_be_missing(),
      core::field<&Specification::network_ms>("network_ms").from(0).may_be_missing(),
      core::field<&Specification::bytes_per_value>("bytes_per_value").above(0).may_be_missing(),
      core::field<&Specification::spread90>("spread90").from(0).may_be_missing(),
      core::field_by<Specification, read_efficiency, write_efficiency>("efficiency")
          .may_be_missing()};
  return {.what = "roofline", .all = kAll};
}

Result<RooflineDevice> RooflineDevice::build(Identity identity,
                                             RooflineSpecification specification) {
  FLEETFIT_TRY(core::check(specification));
  FLEETFIT_TRY(check_efficiency(specification));
  return RooflineDevice(std::move(identity), std::move(specification));
}

Result<NetworkPrice> RooflineDevice::price(std::span<const cost::KernelFeatures> kernels) const {
  const auto& s = specification_;
  return analytic_price(
      kernels, {.kernel_ms = s.kernel_us / 1e3, .network_ms = s.network_ms, .spread90 = s.spread90},
      [&](const cost::KernelFeatures& kernel) {
        const NamedFeatures features(kernel);
        const double values = features.get("input_size", 0) + features.get("output_size", 0) +
                              features.get("weight_size", 0);
        const auto found = s.efficiency.find(kernel.kind);
        const double gflops = s.gflops * (found == s.efficiency.end() ? 1 : found->second);
        return std::max(features.get("flops", 0) / (gflops * 1e6),
                        values * s.bytes_per_value / (s.gbytes_per_s * 1e6));
      });
}

nlohmann::json RooflineDevice::to_json() const {
  return document("roofline", identity_, specification_);
}

Result<std::unique_ptr<KernelPredictor>> RooflineDevice::from_json(const core::JsonView& json,
                                                                   Identity identity) {
  FLEETFIT_ASSIGN(auto s, core::read<RooflineSpecification>(json));
  auto device = build(std::move(identity), std::move(s));
  if (!device) return json.error(device.error().message);
  return std::make_unique<RooflineDevice>(std::move(*device));
}

}  // namespace fleetfit::predict
