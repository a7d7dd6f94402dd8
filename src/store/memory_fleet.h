#pragma once

#include <memory>

#include "fleetfit/store/fleet_store.h"

namespace fleetfit::store {

/// A fleet that is gone with the object.
std::unique_ptr<FleetStore> make_memory_fleet();

}  // namespace fleetfit::store
