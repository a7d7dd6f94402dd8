#include "fleetfit/tune/executor.h"

namespace fleetfit::tune {

Result<std::vector<std::size_t>> Executor::submit_all(std::span<const WorkerSpec> workers) {
  std::vector<std::size_t> handles;
  for (const auto& worker : workers) {
    const auto handle = submit(worker);
    if (!handle) return tl::unexpected(handle.error());
    handles.push_back(*handle);
  }
  return handles;
}

Status Executor::cancel_all() {
  const auto workers = poll();
  if (!workers) return tl::unexpected(workers.error());
  for (std::size_t i = 0; i < workers->size(); ++i)
    if (auto cancelled = cancel(i); !cancelled) return cancelled;
  return {};
}

}  // namespace fleetfit::tune
