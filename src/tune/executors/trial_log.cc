#include "tune/executors/trial_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "fleetfit/core/program.h"

namespace fleetfit::tune {
namespace {

constexpr std::size_t kTailBytes = 4096;
constexpr std::size_t kShownBytes = 300;

// How many bytes of a UTF-8 character begin the text; 0 if none does.
std::size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  std::uint32_t code = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return 0;
    code = code << 6 | (next & 0x3fU);
  }
  const bool is_too_long = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool is_none = (code >= 0xd800 && code < 0xe000) || code > 0x10ffff;
  return is_too_long || is_none ? 0 : size;
}

// Programs print anything; records hold UTF-8 alone.
std::string as_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto size = character_bytes(text);
    if (size == 0) {
      result += '?';
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return result;
}

}  // namespace

Result<TrialLog> TrialLog::open(const std::filesystem::path& file, std::size_t max_bytes) {
  const auto name = file.empty() ? std::filesystem::path("/dev/null") : file;
  core::FileDescriptor opened(
      ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!opened.is_open())
    return fail(ErrorCode::io, fmt::format("{}: cannot be written: {}", name.string(),
                                           core::system_message(errno)));
  return TrialLog(std::move(opened), max_bytes);
}

// A log that cannot be written, as on a full disk, is no reason to lose a training.
void TrialLog::add(std::string_view text) {
  tail_ += text;
  if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  if (room_ == 0) return;
  std::string kept(text.substr(0, room_));
  room_ -= kept.size();
  if (room_ == 0) kept += "\n(the rest is not kept)\n";
  static_cast<void>(core::write_all(file_, kept));
}

std::string TrialLog::end() const {
  std::string text = tail_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() > kShownBytes) {
    const auto line = text.find('\n', text.size() - kShownBytes);
    const bool whole_line = line != std::string::npos && line + 1 < text.size();
    text.erase(0, whole_line ? line + 1 : text.size() - kShownBytes);
  }
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
    text.replace(at, 1, " | ");
  return core::one_line(as_utf8(text));
}

}  // namespace fleetfit::tune
