#include <fmt/format.h>

#include "fleetfit/app/measuring.h"
#include "fleetfit/core/fields.h"
#include "server/api_json.h"

namespace fleetfit::server {
namespace {

bool is_text(std::string_view text) { return text.find('\0') == std::string_view::npos; }

tl::unexpected<Error> senseless(std::string_view field, std::string_view why) {
  return fail(ErrorCode::invalid_input, fmt::format("result: {}: {}", field, why));
}

Status check_latency(const store::Latency& latency) {
  if (!(latency.median_ms > 0)) return senseless("latency_ms", "a run that takes no time is none");
  if (!(latency.mean_ms > 0) || !(latency.p90_ms >= 0) || !(latency.p99_ms >= 0))
    return senseless("latency_ms", "is below zero");
  if (!(latency.ci95_ms.low >= 0) || latency.ci95_ms.low > latency.ci95_ms.high)
    return senseless("latency_ms.ci95", "expected the lower end first");
  return {};
}

}  // namespace

Status check_measurement(const store::MeasurementRecord& record) {
  if (record.latency)
    if (auto ok = check_latency(*record.latency); !ok) return ok;
  if (!record.latency && record.status == store::MeasurementStatus::ok)
    return senseless("latency_ms", "is missing though the status is ok");
  if (record.status != store::MeasurementStatus::ok && record.reason.empty())
    return senseless("reason", "one is needed, as the status is not ok");
  if (record.runs < 0) return senseless("runs", "is below zero");
  if (record.overhead_ms && !(*record.overhead_ms >= 0))
    return senseless("overhead_ms", "is below zero");
  if (record.energy && !(record.energy->mj >= 0)) return senseless("energy_mj", "is below zero");
  bool texts = is_text(record.reason) && is_text(record.device_fingerprint);
  for (const auto& op : record.operators) {
    if (!(op.ms >= 0)) return senseless("ops", "an operator takes less than no time");
    texts = texts && is_text(op.name) && is_text(op.type) && is_text(op.kernel);
  }
  if (!texts) return senseless("text", "contains a NUL character");
  return {};
}

}  // namespace fleetfit::server
