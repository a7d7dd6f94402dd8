#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace fleetfit::core {

/// Cuts a stream of bytes into lines. Of a line that is too long only that is kept.
class LineSplitter {
 public:
  struct Line {
    std::string text = {};  ///< without the "\n"
    bool too_long = false;  ///< then without text
  };

  explicit LineSplitter(std::size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  void add(std::string_view bytes);

  /// The next whole line.
  std::optional<Line> next();
  /// After the last line, when nothing more comes: one that lacks its end.
  std::optional<Line> rest();

  /// Whether the line that has no end yet is too long already.
  bool runs_over() const { return unfinished_.too_long; }
  /// What is kept, of all lines that were not taken yet.
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  std::size_t max_line_bytes_;
  std::size_t held_bytes_ = 0;
  std::deque<Line> whole_;
  Line unfinished_;
};

}  // namespace fleetfit::core
