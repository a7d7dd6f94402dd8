#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "fleetfit/core/companion.h"
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

namespace fs = std::filesystem;

constexpr const char* kName = "onnxruntime";
constexpr const char* kScript = "onnxruntime_runtime.mjs";
constexpr const char* kPackage = "node_modules/onnxruntime-node/package.json";

/// Folders that may hold the runtimes, the first being the best.
std::vector<fs::path> runtime_folders() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* named = std::getenv("FLEETFIT_RUNTIMES");
  if (named != nullptr && *named != '\0') return {named};
  const auto program = core::running_program();
  if (!program) return {};
  const auto folder = program->parent_path();
  return {(folder / "../../runtimes").lexically_normal(),
          (folder / "../lib/fleetfit/runtimes").lexically_normal()};
}

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view line) {
  return CommandSplitter(line).split();
}

Result<std::vector<std::string>> onnxruntime_command() {
  std::string tried;
  for (const auto& folder : runtime_folders()) {
    const auto here = folder / kName;
    std::error_code ignored;
    if (fs::exists(here / kScript, ignored)) {
      if (fs::exists(here / kPackage, ignored))
        return std::vector<std::string>{"node", (here / kScript).string()};
      return fail(ErrorCode::not_found,
                  fmt::format("ONNX Runtime itself is missing in {}; 'npm ci --ignore-scripts' in "
                              "that folder installs it",
                              here.string()));
    }
    tried += fmt::format("{}{}", tried.empty() ? "" : " nor in ", here.string());
  }
  return fail(ErrorCode::not_found,
              fmt::format("ONNX Runtime is not installed in {}; tools/install-runtime onnxruntime "
                          "installs it, FLEETFIT_RUNTIMES names another folder of runtimes",
                          tried));
}

}  // namespace fleetfit::measure
