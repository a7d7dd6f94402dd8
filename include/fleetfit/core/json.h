#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fleetfit/core/result.h"

/// JSON files: read strictly, asked for fields with errors that name them, and written whole.
namespace fleetfit::core {

struct JsonLimits {
  std::uint64_t max_bytes = std::uint64_t{1} << 28;
  int max_depth = 200;  ///< objects and lists inside each other; keeps the stack from overflowing
};

/// Fails with `invalid_input` on a syntax error, a number out of range, a key that occurs twice in
/// an object or nesting that is too deep. The message is one line that starts with the place,
/// "study.json:3:17: …". `name` stands for the file.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view name,
                                  const JsonLimits& limits = {});

/// Also fails as `read_file` does.
Result<nlohmann::json> read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

/// A value, or null where there is none.
template <class Json = nlohmann::ordered_json, class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

/// A list of what `write` makes of each.
template <class Items, class Write>
auto json_list(const Items& items, const Write& write) {
  auto list = std::invoke_result_t<Write, decltype(*std::begin(items))>::array();
  for (const auto& item : items) list.push_back(write(item));
  return list;
}

/// Indented text with a line end. JSON has no NaN and no infinities: they are written as null.
/// Bytes that are not UTF-8 become U+FFFD.
/// An ordered_json keeps the order of its keys, for documents that people read.
std::string format_json(const nlohmann::json& value);
std::string format_json(const nlohmann::ordered_json& value);

/// The same on one line, without a line end, for JSON lines.
std::string format_json_line(const nlohmann::json& value);

/// Replaces the file by `format_json(value)`, in the manner of `write_file`.
Status write_json(const std::filesystem::path& path, const nlohmann::json& value);

struct IntegerRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

/// A value inside a JSON document together with its path, so that errors can name it:
/// "a.json: devices[2].threads: expected a whole number, found a string". Borrows the document.
/// Every error is `invalid_input`. A field that is null counts as absent.
class JsonView {
 public:
  /// The whole document; `name` stands for the file in messages.
  JsonView(const nlohmann::json& document, std::string name);

  const nlohmann::json& value() const { return *value_; }

  /// Where the value is: "a.json: devices[2]", or "a.json" for the whole.
  const std::string& place() const { return place_; }

  /// An error about this value, with its place in front, for what only the caller can check.
  tl::unexpected<Error> error(std::string_view problem) const;

  /// The value itself as a C++ type. A number such as 3.0 is whole.
  Result<std::string> as_text() const;
  Result<double> as_number() const;
  Result<std::int64_t> as_integer(const IntegerRange& range = {}) const;
  Result<bool> as_boolean() const;
  Result<std::vector<double>> as_numbers() const;
  Result<std::vector<std::string>> as_texts() const;

  /// The elements of a list.
  Result<std::vector<JsonView>> items() const;

  /// The fields of an object that are not null, ordered by key.
  struct Member;
  Result<std::vector<Member>> members() const;

  /// A field of an object. `at` fails if it is absent; `find` gives nothing, and both fail on what
  /// is no object.
  Result<JsonView> at(std::string_view key) const;
  Result<std::optional<JsonView>> find(std::string_view key) const;

  /// A field that must be there, as a C++ type.
  Result<std::string> text(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<std::int64_t> integer(std::string_view key, const IntegerRange& range = {}) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;
  Result<std::vector<std::string>> texts(std::string_view key) const;
  Result<std::vector<JsonView>> items(std::string_view key) const;

  /// A field, or `fallback` if it is absent. One of the wrong type is still an error.
  Result<std::string> text_or(std::string_view key, std::string fallback) const;
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback,
                                  const IntegerRange& range = {}) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;

  /// Fails on a field that is none of `keys`, so that a misspelt one does not go unnoticed.
  Status allow_only(std::initializer_list<std::string_view> keys) const;

 private:
  enum class Depth { document, inside };

  JsonView(const nlohmann::json& value, std::string place, Depth depth)
      : value_(&value), place_(std::move(place)), depth_(depth) {}

  JsonView field(std::string_view key, const nlohmann::json& value) const;
  JsonView element(std::size_t index) const;
  tl::unexpected<Error> expected(std::string_view what) const;

  const nlohmann::json* value_;
  std::string place_;
  Depth depth_ = Depth::document;
};

struct JsonView::Member {
  std::string key;
  JsonView value;
};

}  // namespace fleetfit::core
