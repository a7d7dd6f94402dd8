#include "fleetfit/yaml/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace fleetfit::yaml {
namespace {

using Kind = YamlNode::Kind;

// Leaves yaml-cpp's parser from within; never leaves this file.
struct Refusal {
  std::size_t line;
  std::string problem;
};

std::size_t line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 1 : static_cast<std::size_t>(mark.line) + 1;
}

// Builds the tree from the parser's events. What is open is a stack, so that limits hold before
// anything large has come into being.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlLimits& limits) : limits_(limits) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add({.line = line_of(mark)}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto anchored = anchors_.find(anchor);
    if (anchored == anchors_.end()) refuse(line_of(mark), "an alias of what it is part of");
    if (open_.size() + anchored->second.depth > limits_.max_depth) refuse_depth(line_of(mark));
    count(anchored->second.nodes, line_of(mark));
    YamlNode copy = anchored->second.node;
    copy.line = line_of(mark);
    place(std::move(copy), anchored->second.depth);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    if (value.find('\0') != std::string::npos) refuse(line_of(mark), "a text with a zero byte");
    add({.kind = Kind::scalar, .quoted = tag == "!", .text = value, .line = line_of(mark)}, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    std::size_t nodes_before = 0;
    std::size_t depth = 1;  // of what is in it, and itself
    std::optional<YamlNode> key = std::nullopt;
    std::set<std::string, std::less<>> keys = {};
  };
  struct Anchored {
    YamlNode node;
    std::size_t nodes = 0;
    std::size_t depth = 0;
  };

  [[noreturn]] static void refuse(std::size_t line, std::string problem) {
    throw Refusal{line, std::move(problem)};
  }
  [[noreturn]] void refuse_depth(std::size_t line) const {
    refuse(line, fmt::format("more than {} levels inside each other", limits_.max_depth));
  }

  static void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(line_of(mark), fmt::format("the tag {} has no meaning here", tag));
    }
  }

  void count(std::size_t more, std::size_t line) {
    nodes_ += more;
    if (nodes_ > limits_.max_nodes) {
      refuse(line, fmt::format("more than {} values, aliases counted", limits_.max_nodes));
    }
  }

  void add(YamlNode node, YAML::anchor_t anchor) {
    count(1, node.line);
    if (anchor != 0) anchors_[anchor] = {node, 1, 0};
    place(std::move(node), 0);
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check_tag(mark, tag);
    count(1, line_of(mark));
    if (open_.size() >= limits_.max_depth) refuse_depth(line_of(mark));
    open_.push_back({.node = {.kind = kind, .line = line_of(mark)},
                     .anchor = anchor,
                     .nodes_before = nodes_ - 1});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.anchor != 0) {
      anchors_[done.anchor] = {done.node, nodes_ - done.nodes_before, done.depth};
    }
    place(std::move(done.node), done.depth);
  }

  void place(YamlNode node, std::size_t depth) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    parent.depth = std::max(parent.depth, depth + 1);
    if (parent.node.kind == Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      take_key(parent, std::move(node));
    } else {
      node.line = parent.key->line;
      parent.node.members.push_back({std::move(parent.key->text), std::move(node)});
      parent.key.reset();
    }
  }

  static void take_key(Open& parent, YamlNode key) {
    if (key.kind != Kind::scalar) refuse(key.line, "a key that is not a plain word");
    if (!parent.keys.insert(key.text).second) {
      refuse(key.line, fmt::format("the key {} occurs twice", key.text));
    }
    parent.key = std::move(key);
  }

  const YamlLimits& limits_;
  YamlNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
};

// Length of the UTF-8 character that begins the text; 0 if none does, or it is a control character.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  const bool control = first < 0x20 && first != '\t' && first != '\n' && first != '\r';
  if (first < 0x80) return control || first == 0x7f ? 0 : 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  std::size_t length = 2;
  if (first >= 0xe0) length = first < 0xf0 ? 3 : 4;
  const bool longer_than_needed =
      (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool no_character = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  if (longer_than_needed || no_character) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  }
  return length;
}

tl::unexpected<Error> wrong(std::string_view file, std::size_t line, std::string_view problem) {
  return fail(ErrorCode::invalid_input,
              fmt::format("{}:{}: {}", file, line, one_line(problem, kLongestProblem)));
}

Status check_characters(std::string_view text, std::string_view file) {
  std::size_t line = 1;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) {
      return wrong(file, line,
                   fmt::format("the byte {:#04x} does not belong into a text in UTF-8",
                               static_cast<unsigned char>(text[0])));
    }
    line += text[0] == '\n' ? 1 : 0;
    text.remove_prefix(length);
  }
  return {};
}

Result<YamlNode> parse_checked(std::string_view text, std::string_view file,
                               const YamlLimits& limits) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder first(limits);
    parser.HandleNextDocument(first);
    TreeBuilder second(limits);
    if (parser.HandleNextDocument(second)) return wrong(file, 1, "more than one document");
    return first.take();
  } catch (const Refusal& refusal) {
    return wrong(file, refusal.line, refusal.problem);
  } catch (const YAML::Exception& error) {
    return wrong(file, line_of(error.mark), error.msg);
  } catch (const std::exception& error) {
    return wrong(file, 1, error.what());
  }
}

}  // namespace

Result<YamlNode> parse_yaml(std::string_view text, std::string_view file,
                            const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return wrong(file, 1, fmt::format("larger than {} bytes", limits.max_bytes));
  }
  if (Status good = check_characters(text, file); !good) return tl::unexpected(good.error());
  return parse_checked(text, file, limits);
}

}  // namespace fleetfit::yaml
