#include <fmt/format.h>

#include "fleetfit/measure/exec_runtime.h"

namespace fleetfit::measure {
namespace {

class CommandSplitter {
 public:
  explicit CommandSplitter(std::string_view line) : rest_(line) {}

  Result<std::vector<std::string>> split() {
    while (!rest_.empty()) {
      const char c = take();
      if (c == ' ' || c == '\t' || c == '\n') {
        end_word();
      } else if (c == '\'' || c == '"') {
        if (!take_quoted(c)) return broken(fmt::format("a {} is not closed", c));
      } else if (c == '\\') {
        if (rest_.empty()) return broken("nothing follows the last backslash");
        add(take());
      } else {
        add(c);
      }
    }
    end_word();
    if (words_.empty()) return fail(ErrorCode::invalid_input, "the command is empty");
    return std::move(words_);
  }

 private:
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  void add(char c) {
    word_.push_back(c);
    in_word_ = true;
  }

  bool take_quoted(char quote) {
    in_word_ = true;  // '' is a word, though an empty one
    while (!rest_.empty()) {
      char c = take();
      if (c == quote) return true;
      if (c == '\\' && quote == '"' && !rest_.empty()) c = take();
      add(c);
    }
    return false;
  }

  void end_word() {
    if (in_word_) words_.push_back(std::exchange(word_, {}));
    in_word_ = false;
  }

  static tl::unexpected<Error> broken(std::string_view problem) {
    return fail(ErrorCode::invalid_input, fmt::format("the command cannot be read: {}", problem));
  }

  std::string_view rest_;
  std::string word_;
  bool in_word_ = false;
  std::vector<std::string> words_;
};

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view line) {
  return CommandSplitter(line).split();
}

}  // namespace fleetfit::measure
