#include "fleetfit/yaml/yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fleetfit/core/plausible.h"
#include "fleetfit/core/program.h"

namespace fleetfit::yaml {
namespace {

using Kind = YamlNode::Kind;

bool is_null(const YamlNode& node) {
  return node.kind == Kind::nothing ||
         (node.kind == Kind::scalar && !node.quoted &&
          (node.text.empty() || node.text == "~" || node.text == "null"));
}

bool is_plain(const YamlNode& node) {
  return node.kind == Kind::scalar && !node.quoted && !is_null(node);
}

// YAML writes +1, C++ reads it without the sign.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

std::optional<std::int64_t> whole_number(const YamlNode& node) {
  if (!is_plain(node)) return std::nullopt;
  const std::string_view text = without_plus(node.text);
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc() || rest != text.end()) return std::nullopt;
  return number;
}

// Infinite if it is too large; "inf", "nan" and the like are texts.
std::optional<double> any_number(const YamlNode& node) {
  if (!is_plain(node)) return std::nullopt;
  const std::string_view text = without_plus(node.text);
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
  double number = 0;
  const auto [rest, error] = std::from_chars(text.begin(), text.end(), number);
  if (error == std::errc::invalid_argument || rest != text.end()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return INFINITY;
  return number;
}

std::optional<bool> truth(const YamlNode& node) {
  if (!is_plain(node)) return std::nullopt;
  if (node.text == "true") return true;
  if (node.text == "false") return false;
  return std::nullopt;
}

constexpr std::size_t kLongestText = 60;
constexpr std::string_view kFiniteNumber = "a finite number of at most 1e100";
constexpr std::size_t kLongestPath = 120;
std::string describe(const YamlNode& node) {
  if (is_null(node)) return "nothing";
  if (node.kind == Kind::list) return "a list";
  if (node.kind == Kind::map) return "keys with values";
  return fmt::format("\"{}\"", one_line(node.text, kLongestText));
}

}  // namespace

std::string one_line(std::string_view text, std::size_t longest) {
  std::size_t end = std::min(text.size(), longest);
  // Not within a character of UTF-8.
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
    --end;
  }
  auto line = core::one_line(std::string(text.substr(0, end)));
  return end < text.size() ? line + "…" : line;
}

tl::unexpected<Error> YamlView::error(std::string_view problem) const {
  const std::string path = path_.empty() ? "" : one_line(path_, kLongestPath) + ": ";
  return fail(ErrorCode::invalid_input, fmt::format("{}:{}: {}{}", file_, node_->line, path,
                                                    one_line(problem, kLongestProblem)));
}

tl::unexpected<Error> YamlView::expected(std::string_view what) const {
  return error(fmt::format("expected {}, found {}", what, describe(*node_)));
}

Result<std::string> YamlView::as_text() const {
  if (node_->kind != Kind::scalar || is_null(*node_)) return expected("a text");
  return node_->text;
}

Result<double> YamlView::as_number() const {
  const auto number = any_number(*node_);
  if (!number || !core::is_within_reason(*number)) return expected(kFiniteNumber);
  return *number;
}

Result<std::int64_t> YamlView::as_integer(const core::IntegerRange& range) const {
  const auto number = whole_number(*node_);
  if (!number) return expected("a whole number");
  if (*number < range.min) return error(fmt::format("{} is less than {}", *number, range.min));
  if (*number > range.max) return error(fmt::format("{} is more than {}", *number, range.max));
  return *number;
}

Result<bool> YamlView::as_boolean() const {
  const auto value = truth(*node_);
  if (!value) return expected("true or false");
  return *value;
}

Result<Scalar> YamlView::as_scalar() const {
  if (node_->kind != Kind::scalar || is_null(*node_)) return expected("a number or a text");
  if (const auto whole = whole_number(*node_)) return Scalar(*whole);
  if (const auto value = truth(*node_)) return Scalar(*value);
  if (const auto number = any_number(*node_)) {
    if (!core::is_within_reason(*number)) return expected(kFiniteNumber);
    return Scalar(*number);
  }
  return Scalar(node_->text);
}

Result<std::vector<YamlView>> YamlView::items() const {
  if (!is_list()) return expected("a list");
  std::vector<YamlView> views;
  for (const YamlNode& item : node_->items) {
    views.push_back(YamlView(item, file_, fmt::format("{}[{}]", path_, views.size())));
  }
  return views;
}

Result<std::vector<YamlView::Member>> YamlView::members() const {
  if (!is_map()) return expected("keys with values");
  std::vector<Member> views;
  for (const auto& [key, value] : node_->members) views.push_back({key, inside(key, value)});
  return views;
}

Result<YamlView> YamlView::at(std::string_view key) const {
  FLEETFIT_ASSIGN(const auto found, find(key));
  if (!found) return error(fmt::format("{} is missing", key));
  return *found;
}

Result<std::optional<YamlView>> YamlView::find(std::string_view key) const {
  if (!is_map()) return expected("keys with values");
  const auto found = std::ranges::find(node_->members, key, &YamlNode::Member::key);
  if (found == node_->members.end() || is_null(found->value)) return std::nullopt;
  return inside(key, found->value);
}

Status YamlView::allow_only(std::span<const std::string_view> keys) const {
  if (!is_map()) return expected("keys with values");
  for (const auto& [key, value] : node_->members) {
    if (std::ranges::find(keys, key) == keys.end()) {
      return inside(key, value)
          .error(fmt::format("there is no such key; there are {}", fmt::join(keys, ", ")));
    }
  }
  return {};
}

YamlView YamlView::inside(std::string_view key, const YamlNode& node) const {
  return {node, file_, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
}

}  // namespace fleetfit::yaml
