#pragma once

namespace fleetfit::train {

/// How many threads torch and its matrix library use for one operator.
void use_threads(int count);

}  // namespace fleetfit::train
