#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

namespace fleetfit::fleet {

struct NumberRange {
  double above = 0;  ///< not included
  double max = 0;
};

/// Fields of a message, read one after the other; the first one that is wrong is the error. A field
/// whose key ends in '?' may be absent; its target is then left as it is. Borrows the message.
class FieldReader {
 public:
  explicit FieldReader(const core::JsonView& view) : view_(view) {}

  FieldReader& text(std::string_view key, std::string& target, std::size_t most_bytes);
  /// A text that a function refuses or not; an optional one may also be empty.
  FieldReader& checked(std::string_view key, std::string& target,
                       Status (*check)(std::string_view));
  FieldReader& word(std::string_view key, std::string& target,
                    std::span<const std::string_view> words);
  FieldReader& integer(std::string_view key, std::int64_t& target, const core::IntegerRange& range);
  FieldReader& small_integer(std::string_view key, int& target, int min, int max);
  FieldReader& number(std::string_view key, double& target, const NumberRange& range);
  FieldReader& boolean(std::string_view key, bool& target);
  /// An object, kept as text.
  FieldReader& object(std::string_view key, std::string& target, std::size_t most_bytes);

  /// A list of at most so many elements, each read by `parse(JsonView) -> Result<T>`.
  template <class T, class Parse>
  FieldReader& list(std::string_view key, std::vector<T>& target, std::size_t most,
                    const Parse& parse) {
    const auto items = elements(key, most);
    for (const auto& item : items) {
      if (error_) break;
      auto value = parse(item);
      if (value)
        target.push_back(*std::move(value));
      else
        error_ = value.error();
    }
    return *this;
  }

  /// The field, if it is there and nothing went wrong.
  std::optional<core::JsonView> find(std::string_view key);
  void refuse(Error error);
  bool failed() const { return error_.has_value(); }
  Status status() const;

  template <class T>
  Result<T> give(T value) const {
    if (error_) return tl::unexpected(*error_);
    return value;
  }

 private:
  std::vector<core::JsonView> elements(std::string_view key, std::size_t most);

  const core::JsonView& view_;
  std::optional<Error> error_ = std::nullopt;
};

}  // namespace fleetfit::fleet
