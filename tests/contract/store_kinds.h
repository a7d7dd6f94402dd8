#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "tests/store/postgres_for_tests.h"

namespace fleetfit::store {

/// A kind of store, over which the contract's tests run.
struct Kind {
  std::string name;
  /// Of a new store; empty: it cannot be tried here.
  std::function<std::string(const std::filesystem::path& folder)> url;
};

inline void PrintTo(const Kind& kind, std::ostream* stream) { *stream << kind.name; }

/// A new kind of store joins here.
inline auto all_kinds() {
  return testing::Values(
      Kind{"memory", [](const auto&) { return std::string("memory:"); }},
      Kind{"sqlite", [](const auto& folder) { return "sqlite:" + (folder / "store.db").string(); }},
      Kind{"postgres", [](const auto&) { return new_postgres_store(); }});
}

inline std::string name_of_kind(const testing::TestParamInfo<Kind>& tested) {
  return tested.param.name;
}

}  // namespace fleetfit::store
