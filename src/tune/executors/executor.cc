#include "fleetfit/tune/executor.h"

namespace fleetfit::tune {

Result<std::vector<std::size_t>> Executor::submit_all(std::span<const WorkerSpec> workers) {
  std::vector<std::size_t> handles;
  for (const auto& worker : workers) {
    FLEETFIT_ASSIGN(const auto handle, submit(worker));
    handles.push_back(handle);
  }
  return handles;
}

Status Executor::cancel_all() {
  FLEETFIT_ASSIGN(const auto workers, poll());
  for (std::size_t i = 0; i < workers.size(); ++i) FLEETFIT_TRY(cancel(i));
  return {};
}

}  // namespace fleetfit::tune
