#include "fleetfit/app/workplace.h"

#include <fmt/format.h>

#include <utility>

#include "fleetfit/tune/patience.h"

namespace fleetfit::app {

Result<Workplace> open_workplace(std::string_view store_url, const core::Clock& clock,
                                 Programs programs) {
  FLEETFIT_ASSIGN(auto store, store::open_store(store_url));
  return Workplace{.store = std::move(store), .clock = clock, .programs = std::move(programs)};
}

Result<Workplace> open_workplace_patiently(std::string_view store_url, const core::Clock& clock,
                                           const std::stop_token& stop) {
  tune::Patience patience([](std::string_view text) { fmt::print(stderr, "fleetfit: {}\n", text); },
                          stop);
  FLEETFIT_ASSIGN(auto store, patience.keep_trying([&] { return store::open_store(store_url); }));
  return Workplace{.store = std::move(store), .clock = clock};
}

}  // namespace fleetfit::app
