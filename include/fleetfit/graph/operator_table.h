#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <variant>

#include "fleetfit/graph/operators.h"

namespace fleetfit::graph {

template <class Op, class... Ops>
constexpr std::size_t index_among(const std::variant<Ops...>*) {
  std::size_t index = 0;
  (void)((std::is_same_v<Op, Ops> || (++index, false)) || ...);
  return index;
}

/// Stands for a type of operators: its index in AnyOperator. It changes from build to build.
template <class Op>
inline constexpr std::size_t kTypeOf = index_among<Op>(static_cast<const AnyOperator*>(nullptr));

/// What a module knows of types of operators: entries with a member `type`, a kTypeOf, collected
/// from the files that know them. The entries have to outlive it.
template <class Entry>
class OperatorTable {
 public:
  explicit OperatorTable(std::initializer_list<std::span<const Entry>> files) {
    for (const auto& file : files) add(file);
  }

  void add(std::span<const Entry> entries) {
    for (const Entry& entry : entries) entries_[entry.type] = &entry;
  }

  /// Null for a type without an entry.
  const Entry* find(const Operator& op) const { return entries_[op.index()]; }

 private:
  std::array<const Entry*, std::variant_size_v<AnyOperator>> entries_{};
};

}  // namespace fleetfit::graph
