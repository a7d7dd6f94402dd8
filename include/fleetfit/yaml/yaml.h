#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

/// YAML files, asked for fields with errors that name the line: JsonView's brother. Hides yaml-cpp.
namespace fleetfit::yaml {

/// A document as a tree, aliases replaced by what they stand for.
struct YamlNode {
  enum class Kind : std::uint8_t { nothing, scalar, list, map };

  struct Member;

  Kind kind = Kind::nothing;
  bool quoted = false;  ///< a scalar that is a text whatever it looks like
  std::string text = {};
  std::size_t line = 1;  ///< from 1; of a map's member: of its key
  std::vector<YamlNode> items = {};
  std::vector<Member> members;  ///< in the order of the file, keys all different
};

struct YamlNode::Member {
  std::string key = {};
  YamlNode value;
};

struct YamlLimits {
  std::size_t max_bytes = std::size_t{1} << 20;
  std::size_t max_depth = 32;
  std::size_t max_nodes = 50'000;  ///< after aliases were replaced
};

/// Fails with `invalid_input` on bytes that are not UTF-8, control characters, texts with a zero
/// byte, syntax errors, keys that occur twice, tags, more than one document, and what is beyond the
/// limits. The message starts with the place: "a.yaml:3: …".
Result<YamlNode> parse_yaml(std::string_view text, std::string_view file,
                            const YamlLimits& limits = {});

/// What a scalar can be.
using Scalar = std::variant<std::int64_t, double, bool, std::string>;

/// As one line for people: control characters are spaces, and what is longer than `longest` bytes
/// is cut.
std::string one_line(std::string_view text, std::size_t longest);
inline constexpr std::size_t kLongestProblem = 400;

/// A node together with its path. Borrows the document. Every error is `invalid_input` and looks
/// like "a.yaml:14: budget.eta: expected a number, found \"two\"". A field that is empty or null
/// counts as absent.
class YamlView {
 public:
  YamlView(const YamlNode& document, std::string_view file) : node_(&document), file_(file) {}

  const YamlNode& node() const { return *node_; }
  const std::string& path() const { return path_; }
  bool is_list() const { return node_->kind == YamlNode::Kind::list; }
  bool is_map() const { return node_->kind == YamlNode::Kind::map; }

  tl::unexpected<Error> error(std::string_view problem) const;
  /// "expected WHAT, found …".
  tl::unexpected<Error> expected(std::string_view what) const;

  /// Any scalar but nothing, as it is written: 5 is a text, too.
  Result<std::string> as_text() const;
  /// Finite.
  Result<double> as_number() const;
  Result<std::int64_t> as_integer(const core::IntegerRange& range = {}) const;
  Result<bool> as_boolean() const;
  /// A scalar by what it looks like: whole number, number, true or false, else a text.
  Result<Scalar> as_scalar() const;

  Result<std::vector<YamlView>> items() const;
  struct Member;
  /// In the order of the file, those without a value too.
  Result<std::vector<Member>> members() const;

  Result<YamlView> at(std::string_view key) const;
  Result<std::optional<YamlView>> find(std::string_view key) const;
  Status allow_only(std::span<const std::string_view> keys) const;
  Status allow_only(std::initializer_list<std::string_view> keys) const {
    return allow_only(std::span(keys.begin(), keys.size()));
  }

 private:
  YamlView(const YamlNode& node, std::string_view file, std::string path)
      : node_(&node), file_(file), path_(std::move(path)) {}
  YamlView inside(std::string_view key, const YamlNode& node) const;

  const YamlNode* node_;
  std::string_view file_;
  std::string path_ = {};
};

struct YamlView::Member {
  std::string key;
  YamlView value;
};

}  // namespace fleetfit::yaml
