#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "fleetfit/app/serving.h"

namespace fleetfit::app {
namespace {

/// Lines of a file descriptor, of which no more is kept than a request may have.
class Lines {
 public:
  Lines(int fd, std::size_t most_bytes) : fd_(fd), most_bytes_(most_bytes) {}

  struct Line {
    std::string text = {};
    bool too_long = false;
  };

  /// The next line; nothing at the end or when stopped.
  Result<std::optional<Line>> next(const std::stop_token& stop) {
    Line line;
    while (true) {
      if (take(line)) return line;
      if (ended_) return line.text.empty() && !line.too_long ? std::nullopt : std::optional(line);
      if (stop.stop_requested()) return std::nullopt;
      FLEETFIT_TRY(fill());
    }
  }

 private:
  /// Moves what was read to the line; true if that was its end.
  bool take(Line& line) {
    const auto rest = std::string_view(buffer_.data(), filled_).substr(used_);
    const auto end = rest.find('\n');
    const auto part = rest.substr(0, end);
    used_ += end == std::string_view::npos ? rest.size() : end + 1;
    if (line.text.size() + part.size() > most_bytes_) {
      line.too_long = true;
      line.text.clear();
    } else if (!line.too_long) {
      line.text += part;
    }
    return end != std::string_view::npos;
  }

  /// Reads more, if there is any within a short while.
  Status fill() {
    constexpr int kTickMs = 50;
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, kTickMs) <= 0) return {};
    const auto count = ::read(fd_, buffer_.data(), buffer_.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    if (count < 0)
      return fail(ErrorCode::io, fmt::format("requests cannot be read (error {})", errno));
    filled_ = static_cast<std::size_t>(count);
    used_ = 0;
    ended_ = count == 0;
    return {};
  }

  int fd_;
  std::size_t most_bytes_;
  std::array<char, 65536> buffer_{};
  std::size_t filled_ = 0;
  std::size_t used_ = 0;
  bool ended_ = false;
};

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Status serve_lines(Serving& serving, int input,
                   const std::function<Status(std::string_view)>& write,
                   const std::stop_token& stop) {
  const std::size_t most = serving.most_request_bytes();
  Lines lines(input, most);
  while (!stop.stop_requested()) {
    FLEETFIT_ASSIGN(const auto line, lines.next(stop));
    if (!line) return {};
    const auto& [text, too_long] = *line;
    if (!too_long && is_blank(text)) continue;
    const auto reply =
        too_long ? adapt::refusal(fmt::format("request: it is longer than {} bytes", most))
                 : serving.answer(text);
    FLEETFIT_TRY(write(reply.json));
  }
  return {};
}

}  // namespace fleetfit::app
