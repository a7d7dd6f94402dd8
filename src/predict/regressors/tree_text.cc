#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "fleetfit/predict/tree_model.h"

namespace fleetfit::predict {
namespace {

// Reads one number after the other from a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool done() const { return at_ == end_; }

  bool take(char wanted) {
    if (done() || *at_ != wanted) return false;
    ++at_;
    return true;
  }

  template <class Number>
  bool read(Number& number) {
    const auto [stop, problem] = std::from_chars(at_, end_, number);
    at_ = stop;
    return problem == std::errc();
  }

 private:
  const char* at_;
  const char* end_;
};

bool read_node(Reader& reader, TreeModel::Node& node) {
  if (reader.take('=')) return reader.read(node.value);
  return reader.read(node.feature) && node.feature >= 0 && reader.take('<') &&
         reader.read(node.value);
}

}  // namespace

std::string format_tree(const TreeModel::Tree& tree) {
  std::string text;
  for (const auto& node : tree) {
    if (!text.empty()) text += ' ';
    if (node.feature < 0) {
      fmt::format_to(std::back_inserter(text), "={}", node.value);
    } else {
      fmt::format_to(std::back_inserter(text), "{}<{}", node.feature, node.value);
    }
  }
  return text;
}

Result<TreeModel::Tree> parse_tree(std::string_view text) {
  TreeModel::Tree tree;
  tree.reserve(text.size() / 8);
  Reader reader(text);
  while (!reader.done()) {
    TreeModel::Node node;
    if ((!tree.empty() && !reader.take(' ')) || !read_node(reader, node)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("node {} is neither FEATURE<THRESHOLD nor =VALUE", tree.size()));
    }
    tree.push_back(node);
  }
  return tree;
}

}  // namespace fleetfit::predict
