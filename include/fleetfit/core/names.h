#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fleetfit/core/result.h"

/// The values of an enum have names, which are written once, beside the enum:
///
///     enum class Role { admin, viewer };
///     core::Names names_of(Role);                  // in the header
///     using core::to_string;                       // so that `store::to_string(role)` works, too
///
///     core::Names names_of(Role) {                 // in the source
///       static constexpr core::Name kAll[] = {{Role::admin, "admin"}, {Role::viewer, "viewer"}};
///       return {.what = "role", .all = kAll};
///     }
///
/// `core::to_string(role)` and `core::parse_name<Role>(text)` come from that, and fields of records
/// of such a type (fields.h).
namespace fleetfit::core {

/// A value of an enum and its name.
struct Name {
  template <class Enum>
    requires std::is_enum_v<Enum>
  constexpr Name(Enum of, std::string_view called)
      : value(static_cast<std::int64_t>(of)), text(called) {}

  std::int64_t value;
  std::string_view text;
};

/// All names of an enum. They live as long as the program.
struct Names {
  std::string_view what = {};  ///< one value in messages: "state of a job"
  std::span<const Name> all = {};

  /// Empty if the value has no name.
  std::string_view of(std::int64_t value) const;
  std::optional<std::int64_t> find(std::string_view text) const;
  /// "admin, viewer"
  std::string list() const;
  /// `find`; fails with `invalid_input`: "'x' is no role (admin, viewer)".
  Result<std::int64_t> parse(std::string_view text) const;
};

Names names_of(ErrorCode);

template <class Enum>
concept Named = std::is_enum_v<Enum> && requires(Enum value) {
  { names_of(value) } -> std::same_as<Names>;
};

template <Named Enum>
std::string_view to_string(Enum value) {
  return names_of(value).of(static_cast<std::int64_t>(value));
}

template <Named Enum>
Result<Enum> parse_name(std::string_view text) {
  return names_of(Enum{}).parse(text).map(
      [](std::int64_t value) { return static_cast<Enum>(value); });
}

}  // namespace fleetfit::core
