#pragma once

#include <memory>

#include "fleetfit/store/store.h"

namespace fleetfit::store {

/// A store that is gone with the object.
std::unique_ptr<Store> make_memory_store();

}  // namespace fleetfit::store
