#include "fleetfit/core/line_splitter.h"

#include <utility>

namespace fleetfit::core {

void LineSplitter::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto part = bytes.substr(0, end);
    auto& line = unfinished_;
    if (line.too_long || line.text.size() + part.size() > max_line_bytes_) {
      held_bytes_ -= line.text.size();
      line = {.too_long = true};
    } else {
      line.text += part;
      held_bytes_ += part.size();
    }
    if (end == std::string_view::npos) return;
    whole_.push_back(std::exchange(line, {}));
    bytes.remove_prefix(end + 1);
  }
}

std::optional<LineSplitter::Line> LineSplitter::next() {
  if (whole_.empty()) return std::nullopt;
  auto line = std::move(whole_.front());
  whole_.pop_front();
  held_bytes_ -= line.text.size();
  return line;
}

std::optional<LineSplitter::Line> LineSplitter::rest() {
  if (unfinished_.text.empty() && !unfinished_.too_long) return std::nullopt;
  held_bytes_ -= unfinished_.text.size();
  return std::exchange(unfinished_, {});
}

}  // namespace fleetfit::core
