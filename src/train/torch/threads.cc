#include "train/torch/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace fleetfit::train {

void use_threads(int count) {
  at::set_num_threads(count);
  // libtorch reaches OpenBLAS behind Debian's interface of all BLAS libraries, and does not tell
  // it.
  using SetThreads = void (*)(int);
  if (auto* const set = ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
    reinterpret_cast<SetThreads>(set)(count);
}

}  // namespace fleetfit::train
