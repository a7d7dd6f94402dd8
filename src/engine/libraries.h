#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel.h"

/// What each source of kernels offers. A factory gives nothing for a task that it has no kernel
/// for.
namespace fleetfit::engine {

/// Ways in which oneDNN can do a task, best guess first; empty if it cannot. "" is a way.
std::vector<std::string> onednn_ways(const Task& task);
KernelPtr make_onednn_kernel(const Task& task, std::string_view way);

/// Whether oneDNN has a fast kernel for a convolution; cheaper than making it.
bool onednn_can(const Task& task);

KernelPtr make_xnnpack_kernel(const Task& task);

/// Our own, for what the libraries lack: plain format alone.
KernelPtr make_own_kernel(const Task& task);

/// The interpreter of module graph: does everything in plain format, slowly.
KernelPtr make_reference_kernel(const Task& task);

std::string onednn_identity();
std::string xnnpack_identity();

}  // namespace fleetfit::engine
