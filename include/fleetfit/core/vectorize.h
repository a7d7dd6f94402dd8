#pragma once

/// Compiles a function once for each generation of the CPU's vector instructions and picks the
/// right one when the program starts. The function must not be a template; templates and lambdas
/// that it calls become part of it if they are FLEETFIT_INLINE or small. Sanitizers are not ready
/// when such a choice is made, and clang cannot yet make it for all of our functions.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FLEETFIT_VECTORIZE \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FLEETFIT_VECTORIZE
#endif

#define FLEETFIT_INLINE __attribute__((always_inline)) inline

/// Before a loop: what it writes is not what it reads, except at the same index.
#if defined(__clang__)
#define FLEETFIT_INDEPENDENT
#else
#define FLEETFIT_INDEPENDENT _Pragma("GCC ivdep")
#endif
