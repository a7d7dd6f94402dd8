#pragma once

#include <string>
#include <string_view>

namespace fleetfit::app {

/// The name of this process as a worker: "w1@host:4711".
std::string name_of_this_worker(std::string_view as);

/// Whether the worker was a process of this machine that has ended.
bool has_died_here(std::string_view worker);

}  // namespace fleetfit::app
