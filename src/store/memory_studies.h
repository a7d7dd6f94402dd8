#pragma once

#include <memory>

#include "fleetfit/store/study_store.h"

namespace fleetfit::store {

/// Studies that are gone with the object.
std::unique_ptr<StudyStore> make_memory_studies();

}  // namespace fleetfit::store
