#pragma once

#include <filesystem>
#include <iosfwd>
#include <memory>
#include <stop_token>
#include <string_view>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"
#include "fleetfit/store/store.h"

/// What use cases on devices work with.
namespace fleetfit::app {

/// Programs that are started to do a part of the work.
struct Programs {
  /// `fleetfit` itself, whose verb `runtime` executes models. Empty: the running program.
  std::filesystem::path self = {};
};

/// Where results are kept, what time it is, and which programs help. The clock is borrowed.
struct Workplace {
  std::unique_ptr<store::Store> store;
  const core::Clock& clock;
  Programs programs = {};
};

/// Fails as `store::open_store` does.
Result<Workplace> open_workplace(std::string_view store_url, const core::Clock& clock,
                                 Programs programs = {});

/// The same, but a store that fails with `io` is waited for, saying so on stderr: a worker may be
/// started while its data base is.
Result<Workplace> open_workplace_patiently(std::string_view store_url, const core::Clock& clock,
                                           const std::stop_token& stop);

/// What the verb `runtime` does: executes models for the process that started it, until the input
/// ends (docs/formats/runtime.md). A runtime is a process of its own so that limits hold for it
/// alone, its memory can be known, and its end is not ours.
Status serve_engine(std::istream& in, std::ostream& out);

}  // namespace fleetfit::app
