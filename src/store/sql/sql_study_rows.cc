#include "store/sql/sql_study_rows.h"

#include "fleetfit/core/fields.h"

namespace fleetfit::store {

using core::field;

core::Fields fields_of(const Progress*) {
  static constexpr core::Field kAll[] = {field<&Progress::study>("id").constant(),
                                         field<&Progress::change>("change"),
                                         field<&Progress::counts>("counts").inlined()};
  return {.what = "progress", .all = kAll};
}

core::Fields fields_of(const Lead*) {
  static constexpr core::Field kAll[] = {field<&Lead::study>("id"), field<&Lead::tuner>("tuner"),
                                         field<&Lead::until>("tuner_until")};
  return {.what = "lead", .all = kAll};
}

core::Fields fields_of(const LevelOfTrial*) {
  static constexpr core::Field kAll[] = {field<&LevelOfTrial::trial>("trial"),
                                         field<&LevelOfTrial::level>("levels").inlined()};
  return {.what = "trial", .all = kAll};
}

}  // namespace fleetfit::store
