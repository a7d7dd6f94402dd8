#include "fleetfit/store/gone.h"

#include <algorithm>
#include <array>

namespace fleetfit::store {

bool cannot_come_back(const Error& error) {
  static constexpr std::array kReasons = {kFileGone, kDatabaseGone, kSchemaGone};
  return error.code == ErrorCode::io && std::ranges::any_of(kReasons, [&](std::string_view reason) {
           return error.message.ends_with(reason);
         });
}

}  // namespace fleetfit::store
