#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fleetfit/predict/analytic.h"
#include "predict/analytic_price.h"
#include "predict/named_features.h"
#include "predict/predictor_fields.h"

namespace fleetfit::predict {
namespace {

Status check(const RooflineSpecification& s) {
  for (const auto& [field, value] :
       {std::pair{"gflops", s.gflops}, std::pair{"gbytes_per_s", s.gbytes_per_s},
        std::pair{"bytes_per_value", s.bytes_per_value}})
    FLEETFIT_TRY(check_positive(field, value));
  for (const auto& [field, value] :
       {std::pair{"kernel_us", s.kernel_us}, std::pair{"network_ms", s.network_ms},
        std::pair{"spread90", s.spread90}})
    FLEETFIT_TRY(check_not_negative(field, value));
  for (const auto& [kind, share] : s.efficiency) {
    if (share > 0 && share <= 1) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("efficiency of {}: {} is not above 0 and up to 1", kind, share));
  }
  return {};
}

}  // namespace

Result<RooflineDevice> RooflineDevice::build(Identity identity,
                                             RooflineSpecification specification) {
  FLEETFIT_TRY(check(specification));
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
  const auto& s = specification_;
  auto json = document_head("roofline", identity_);
  json["gflops"] = s.gflops;
  json["gbytes_per_s"] = s.gbytes_per_s;
  json["kernel_us"] = s.kernel_us;
  json["network_ms"] = s.network_ms;
  json["bytes_per_value"] = s.bytes_per_value;
  json["spread90"] = s.spread90;
  json["efficiency"] = s.efficiency;
  return json;
}

Result<std::unique_ptr<KernelPredictor>> RooflineDevice::from_json(const core::JsonView& json,
                                                                   Identity identity) {
  RooflineSpecification s;
  for (const auto& [key, into] :
       {std::pair{"gflops", &s.gflops}, std::pair{"gbytes_per_s", &s.gbytes_per_s},
        std::pair{"kernel_us", &s.kernel_us}, std::pair{"network_ms", &s.network_ms},
        std::pair{"bytes_per_value", &s.bytes_per_value}, std::pair{"spread90", &s.spread90}}) {
    FLEETFIT_ASSIGN(*into, json.number_or(key, *into));
  }
  FLEETFIT_ASSIGN(const auto efficiency, json.find("efficiency"));
  if (efficiency) {
    FLEETFIT_ASSIGN(const auto members, efficiency->members());
    for (const auto& [kind, value] : members) {
      FLEETFIT_ASSIGN(s.efficiency[kind], value.as_number());
    }
  }
  auto device = build(std::move(identity), std::move(s));
  if (!device) return json.error(device.error().message);
  return std::make_unique<RooflineDevice>(std::move(*device));
}

}  // namespace fleetfit::predict
