#include "train/elastify_place.h"

#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"

namespace fleetfit::train {

core::Fields fields_of(const RangeAccuracy*) {
  static constexpr core::Field kAll[] = {
      core::field<&RangeAccuracy::low>("low"), core::field<&RangeAccuracy::high>("high"),
      core::field<&RangeAccuracy::mean>("mean"), core::field<&RangeAccuracy::subnets>("subnets"),
      core::field<&RangeAccuracy::mean_iou>("mean_iou").omit_default()};
  return {.all = kAll};
}

core::Fields fields_of(const ElastifyEpoch*) {
  static constexpr core::Field kAll[] = {core::field<&ElastifyEpoch::stage>("stage"),
                                         core::field<&ElastifyEpoch::epoch>("epoch").from(0),
                                         core::field<&ElastifyEpoch::loss>("loss"),
                                         core::field<&ElastifyEpoch::validation>("validation")};
  return {.all = kAll};
}

core::Fields fields_of(const ElastifyPlace*) {
  static constexpr core::Field kAll[] = {core::field<&ElastifyPlace::subject>("elastification"),
                                         core::field<&ElastifyPlace::stage>("stage"),
                                         core::field<&ElastifyPlace::epoch>("epoch").from(0),
                                         core::field<&ElastifyPlace::step>("step").from(0),
                                         core::field<&ElastifyPlace::loss_sum>("loss_sum"),
                                         core::field<&ElastifyPlace::elapsed_s>("elapsed_s"),
                                         core::field<&ElastifyPlace::epochs>("epochs")};
  return {.all = kAll};
}

std::string to_notes(const ElastifyPlace& place) {
  return core::format_json_line(core::to_json<nlohmann::json>(place));
}

Result<ElastifyPlace> read_notes(const std::string& notes, const std::string& name) {
  FLEETFIT_ASSIGN(const auto document, core::parse_json(notes, name));
  return core::read<ElastifyPlace>(core::JsonView(document, name));
}

}  // namespace fleetfit::train
