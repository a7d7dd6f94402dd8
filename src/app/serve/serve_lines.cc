#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "fleetfit/app/serving.h"
#include "fleetfit/core/line_splitter.h"

namespace fleetfit::app {
namespace {

/// Adds what can be read within a short while. False at the end.
Result<bool> read_more(int input, core::LineSplitter& lines) {
  constexpr int kTickMs = 50;
  pollfd waiting{.fd = input, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, kTickMs) <= 0) return true;
  std::array<char, 65536> buffer;
  const auto count = ::read(input, buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (count < 0)
    return fail(ErrorCode::io, fmt::format("requests cannot be read (error {})", errno));
  lines.add({buffer.data(), static_cast<std::size_t>(count)});
  return count > 0;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Status serve_lines(Serving& serving, int input,
                   const std::function<Status(std::string_view)>& write,
                   const std::stop_token& stop) {
  const std::size_t most = serving.most_request_bytes();
  core::LineSplitter lines(most);
  bool more = true;
  while (!stop.stop_requested()) {
    auto line = lines.next();
    if (!line && more) {
      FLEETFIT_ASSIGN(more, read_more(input, lines));
      continue;
    }
    if (!line) line = lines.rest();
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
