#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fleetfit/core/json.h"

namespace fleetfit::measure {

/// Reads many fields of one object into variables and keeps the first error, so that reading a
/// record stays a list of lines. An absent field leaves its variable as it is. Borrows the view.
class JsonFields {
 public:
  explicit JsonFields(const core::JsonView& json) : json_(json) {}

  template <class T, class U>
  void take(Result<T> value, U& out) {
    if (!value) {
      note(std::move(value.error()));
    } else {
      out = static_cast<U>(*std::move(value));
    }
  }
  void text(std::string_view key, std::string& out) { take(json_.text_or(key, out), out); }
  void number(std::string_view key, double& out) { take(json_.number_or(key, out), out); }
  void boolean(std::string_view key, bool& out) { take(json_.boolean_or(key, out), out); }
  template <class T>
  void integer(std::string_view key, T& out) {
    using Range = std::numeric_limits<T>;
    take(json_.integer_or(key, out, {Range::min(), Range::max()}), out);
  }
  template <class T>
  void optional_integer(std::string_view key, std::optional<T>& out) {
    if (!object(key)) return;
    T value = 0;
    integer(key, value);
    out = value;
  }
  void optional_number(std::string_view key, std::optional<double>& out) {
    if (object(key)) take(json_.number(key), out);
  }

  /// A field of any type, if it is there.
  std::optional<core::JsonView> object(std::string_view key) {
    auto found = json_.find(key);
    if (found) return *std::move(found);
    note(std::move(found.error()));
    return std::nullopt;
  }

  void allow_only(std::initializer_list<std::string_view> keys) { note(json_.allow_only(keys)); }
  void note(Status status) {
    if (!status) note(std::move(status.error()));
  }
  void note(Error error) {
    if (!error_) error_ = std::move(error);
  }

  Status status() const {
    if (error_) return tl::unexpected(*error_);
    return {};
  }

 private:
  const core::JsonView& json_;
  std::optional<Error> error_;
};

}  // namespace fleetfit::measure
