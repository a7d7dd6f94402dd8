#include "fleetfit/app/workplace.h"

#include <utility>

#include "fleetfit/measure/engine_runtime.h"
#include "fleetfit/measure/serve_runtime.h"

namespace fleetfit::app {

Result<Workplace> open_workplace(std::string_view store_url, const core::Clock& clock,
                                 Programs programs) {
  auto store = store::open_store(store_url);
  if (!store) return tl::unexpected(std::move(store.error()));
  return Workplace{.store = *std::move(store), .clock = clock, .programs = std::move(programs)};
}

Status serve_engine(std::istream& in, std::ostream& out) {
  const auto runtime = measure::make_engine_runtime();
  return measure::serve_runtime(*runtime, in, out);
}

}  // namespace fleetfit::app
