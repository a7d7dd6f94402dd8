#pragma once

#include <variant>

namespace fleetfit::graph {

/// The operators of a family. `Operator` is made of all families, so that a new operator is named
/// in its family's header alone.
template <class... Ops>
struct OperatorList {};

template <class... Lists>
struct VariantOf;
template <class... Ops>
struct VariantOf<OperatorList<Ops...>> {
  using type = std::variant<Ops...>;
};
template <class... A, class... B, class... Rest>
struct VariantOf<OperatorList<A...>, OperatorList<B...>, Rest...>
    : VariantOf<OperatorList<A..., B...>, Rest...> {};

/// A variant of all operators of these lists.
template <class... Lists>
using OneOf = typename VariantOf<Lists...>::type;

}  // namespace fleetfit::graph
