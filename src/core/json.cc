#include "fleetfit/core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text_place.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/plausible.h"

namespace fleetfit::core {
namespace {

using Json = nlohmann::json;

// Tells outside how far the parser has read, which the parser does not tell its handler.
class TracedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit TracedIterator(const char** at) : at_(at) {}
  static TracedIterator end(const char* end) {
    TracedIterator result(nullptr);
    result.end_ = end;
    return result;
  }

  reference operator*() const { return **at_; }
  TracedIterator& operator++() {
    ++*at_;
    return *this;
  }
  bool operator==(const TracedIterator& other) const { return position() == other.position(); }

 private:
  const char* position() const { return at_ != nullptr ? *at_ : end_; }

  const char** at_;
  const char* end_ = nullptr;
};

// "[json.exception.…] parse error at line 1, column 2: syntax error while … - what; last read: …"
// without the parts that the place says already or that may be long.
std::string problem_in(std::string_view message) {
  const auto bracket = message.find("] ");
  if (bracket != std::string_view::npos) message.remove_prefix(bracket + 2);
  const auto column = message.find(", column ");
  if (message.starts_with("parse error at ") && column != std::string_view::npos) {
    message.remove_prefix(std::min(message.size(), message.find(": ", column) + 2));
  }
  message = message.substr(0, message.find("; last read: "));
  if (message.starts_with("number overflow")) return "a number out of range";
  return std::string(message);
}

// Builds the document from the parser's events. Refuses deep nesting and double keys.
class DocumentBuilder final : public Json::json_sax_t {
 public:
  DocumentBuilder(std::string_view text, std::string_view name, int max_depth)
      : text_(text), name_(name), max_depth_(max_depth), at_(text.data()) {}

  Result<Json> build() {
    TracedIterator first(&at_);
    if (!Json::sax_parse(first, TracedIterator::end(text_.data() + text_.size()), this)) {
      return tl::unexpected(std::move(error_));
    }
    return std::move(document_);
  }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(Json::number_integer_t value) override { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) override { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    const auto [place, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(name);
    if (!is_new) {
      return refuse(key_offset(),
                    fmt::format("the key '{}' occurs twice in one object", excerpt(name)));
    }
    slot_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& problem) override {
    return refuse(position == 0 ? 0 : position - 1, problem_in(problem.what()));
  }

 private:
  std::size_t offset() const { return static_cast<std::size_t>(at_ - text_.data()); }

  // The opening quote of the key that was just read.
  std::size_t key_offset() const {
    std::size_t quote = offset() - 1;
    for (bool escaped = true; escaped;) {
      quote = text_.rfind('"', quote - 1);
      const auto last_other = text_.substr(0, quote).find_last_not_of('\\');
      escaped = (quote - last_other - 1) % 2 == 1;
    }
    return quote;
  }

  bool refuse(std::size_t place, std::string_view problem) {
    error_ = {ErrorCode::invalid_input,
              fmt::format("{}: {}", text_place(name_, text_, place), problem)};
    return false;
  }

  Json* put(Json value) {
    if (open_.empty()) return &(document_ = std::move(value));
    if (open_.back()->is_array())
      return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
    return &(*slot_ = std::move(value));
  }

  bool add(Json value) {
    put(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      return refuse(offset() - 1, fmt::format("more than {} levels of nesting", max_depth_));
    }
    open_.push_back(put(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view name_;
  int max_depth_;
  const char* at_;
  Json document_;
  std::vector<Json*> open_;  // the containers around the place that is read
  Json* slot_ = nullptr;     // where the value of the last key belongs
  Error error_;
};

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    default:
      return "a number";
  }
}

std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= kMax ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(std::abs(number) <= 0x1p53) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// A field's value by `read`, or `fallback` if there is none.
template <class T, class Read>
Result<T> read_or(const JsonView& view, std::string_view key, T fallback, Read read) {
  FLEETFIT_ASSIGN(auto found, view.find(key));
  if (!found) return fallback;
  return read(*found);
}

// The elements of a list, each by `read`.
template <class T, class Read>
Result<std::vector<T>> read_each(const Result<std::vector<JsonView>>& views, Read read) {
  FLEETFIT_TRY(views);
  std::vector<T> values;
  values.reserve(views->size());
  for (const auto& view : *views) {
    FLEETFIT_ASSIGN(auto value, read(view));
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: the text has {} bytes, more than the limit", name, text.size()));
  }
  return DocumentBuilder(text, name, limits.max_depth).build();
}

Result<Json> read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  FLEETFIT_ASSIGN(const auto text, read_file(path, {.max_bytes = limits.max_bytes}));
  return parse_json(text, path.string(), limits);
}

std::string format_json(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string format_json(const nlohmann::ordered_json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string format_json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status write_json(const std::filesystem::path& path, const Json& value) {
  return write_file(path, format_json(value));
}

JsonView::JsonView(const Json& document, std::string name)
    : value_(&document), place_(std::move(name)) {}

tl::unexpected<Error> JsonView::error(std::string_view problem) const {
  return fail(ErrorCode::invalid_input, fmt::format("{}: {}", place_, problem));
}

tl::unexpected<Error> JsonView::expected(std::string_view what) const {
  return error(fmt::format("expected {}, found {}", what, kind_of(*value_)));
}

JsonView JsonView::field(std::string_view key, const Json& value) const {
  const auto* separator = depth_ == Depth::document ? ": " : ".";
  return {value, fmt::format("{}{}{}", place_, separator, excerpt(key)), Depth::inside};
}

JsonView JsonView::element(std::size_t index) const {
  const auto* separator = depth_ == Depth::document ? ": " : "";
  return {(*value_)[index], fmt::format("{}{}[{}]", place_, separator, index), Depth::inside};
}

Result<std::string> JsonView::as_text() const {
  if (!value_->is_string()) return expected("a string");
  return value_->get<std::string>();
}

namespace {

tl::unexpected<Error> out_of_reason(const JsonView& view, double number) {
  return view.error(fmt::format("{:g} lies beyond ±{:g}", number, kLargestNumber));
}

}  // namespace

Result<double> JsonView::as_number() const {
  if (!value_->is_number()) return expected("a number");
  const auto number = value_->get<double>();
  if (!is_within_reason(number)) return out_of_reason(*this, number);
  return number;
}

Result<std::int64_t> JsonView::as_integer(const IntegerRange& range) const {
  if (!value_->is_number()) return expected("a whole number");
  const auto number = whole_number(*value_);
  if (number && *number >= range.min && *number <= range.max) return *number;
  constexpr IntegerRange kAll;
  std::string bounds;
  if (range.min != kAll.min) bounds += fmt::format(" from {}", range.min);
  if (range.max != kAll.max) bounds += fmt::format(" to {}", range.max);
  return error(
      fmt::format("expected a whole number{}, found {}", bounds, format_json_line(*value_)));
}

Result<bool> JsonView::as_boolean() const {
  if (!value_->is_boolean()) return expected("a boolean");
  return value_->get<bool>();
}

// Does not go by `items`, whose paths would cost more than the numbers.
Result<std::vector<double>> JsonView::as_numbers() const {
  if (!value_->is_array()) return expected("a list of numbers");
  std::vector<double> numbers;
  numbers.reserve(value_->size());
  for (const auto& item : *value_) {
    if (!item.is_number()) return element(numbers.size()).expected("a number");
    const auto number = item.get<double>();
    if (!is_within_reason(number)) return out_of_reason(element(numbers.size()), number);
    numbers.push_back(number);
  }
  return numbers;
}

Result<std::vector<std::string>> JsonView::as_texts() const {
  return read_each<std::string>(items(), [](const JsonView& view) { return view.as_text(); });
}

Result<std::vector<JsonView>> JsonView::items() const {
  if (!value_->is_array()) return expected("a list");
  std::vector<JsonView> views;
  views.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) views.push_back(element(i));
  return views;
}

Result<std::vector<JsonView::Member>> JsonView::members() const {
  if (!value_->is_object()) return expected("an object");
  std::vector<Member> members;
  for (const auto& [key, value] : value_->items()) {
    if (!value.is_null()) members.push_back({key, field(key, value)});
  }
  return members;
}

Result<std::optional<JsonView>> JsonView::find(std::string_view key) const {
  if (!value_->is_object()) return expected("an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return field(key, *found);
}

Result<JsonView> JsonView::at(std::string_view key) const {
  FLEETFIT_ASSIGN(auto found, find(key));
  if (!found) return error(fmt::format("the field '{}' is missing", key));
  return std::move(*found);
}

Result<std::string> JsonView::text(std::string_view key) const {
  return at(key).and_then([](const JsonView& view) { return view.as_text(); });
}

Result<double> JsonView::number(std::string_view key) const {
  return at(key).and_then([](const JsonView& view) { return view.as_number(); });
}

Result<std::int64_t> JsonView::integer(std::string_view key, const IntegerRange& range) const {
  return at(key).and_then([&](const JsonView& view) { return view.as_integer(range); });
}

Result<bool> JsonView::boolean(std::string_view key) const {
  return at(key).and_then([](const JsonView& view) { return view.as_boolean(); });
}

Result<std::vector<double>> JsonView::numbers(std::string_view key) const {
  return at(key).and_then([](const JsonView& view) { return view.as_numbers(); });
}

Result<std::vector<std::string>> JsonView::texts(std::string_view key) const {
  return at(key).and_then([](const JsonView& view) { return view.as_texts(); });
}

Result<std::vector<JsonView>> JsonView::items(std::string_view key) const {
  return at(key).and_then([](const JsonView& view) { return view.items(); });
}

Result<std::string> JsonView::text_or(std::string_view key, std::string fallback) const {
  return read_or(*this, key, std::move(fallback),
                 [](const JsonView& view) { return view.as_text(); });
}

Result<std::int64_t> JsonView::integer_or(std::string_view key, std::int64_t fallback,
                                          const IntegerRange& range) const {
  return read_or(*this, key, fallback,
                 [&](const JsonView& view) { return view.as_integer(range); });
}

Result<bool> JsonView::boolean_or(std::string_view key, bool fallback) const {
  return read_or(*this, key, fallback, [](const JsonView& view) { return view.as_boolean(); });
}

Status JsonView::allow_only(std::initializer_list<std::string_view> keys) const {
  if (!value_->is_object()) return expected("an object");
  for (const auto& item : value_->items()) {
    if (std::ranges::find(keys, std::string_view(item.key())) == keys.end()) {
      return error(fmt::format("unknown field '{}'", excerpt(item.key())));
    }
  }
  return {};
}

}  // namespace fleetfit::core
