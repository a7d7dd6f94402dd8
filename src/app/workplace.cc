#include "fleetfit/app/workplace.h"

#include <utility>

namespace fleetfit::app {

Result<Workplace> open_workplace(std::string_view store_url, const core::Clock& clock,
                                 Programs programs) {
  FLEETFIT_ASSIGN(auto store, store::open_store(store_url));
  return Workplace{.store = std::move(store), .clock = clock, .programs = std::move(programs)};
}

}  // namespace fleetfit::app
