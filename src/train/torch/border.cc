#include "train/torch/border.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace fleetfit::train {

Status check_available(Compute compute) {
  if (compute == Compute::cpu || at::hasCUDA()) return {};
  return refuse("--compute cuda: there is no CUDA device here, or libtorch was built without CUDA");
}

void use_threads(int count) {
  at::set_num_threads(count);
  // libtorch reaches OpenBLAS behind Debian's interface of all BLAS libraries, and does not tell
  // it.
  using SetThreads = void (*)(int);
  if (auto* const set = ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
    reinterpret_cast<SetThreads>(set)(count);
}

std::string message_of(const std::exception& thrown) {
  const auto* const by_torch = dynamic_cast<const c10::Error*>(&thrown);
  const std::string text = by_torch != nullptr ? by_torch->what_without_backtrace() : thrown.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace fleetfit::train
