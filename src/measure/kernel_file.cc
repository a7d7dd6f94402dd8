#include "measure/kernel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <system_error>

#include "fleetfit/core/file.h"
#include "fleetfit/core/file_descriptor.h"

namespace fleetfit::measure {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSpace = " \t\r\n\v\f";

tl::unexpected<Error> cannot_write(const fs::path& path, int error) {
  return fail(error == ENOENT ? ErrorCode::not_found : ErrorCode::io,
              fmt::format("cannot write {}: {}", path.string(), core::system_message(error)));
}

}  // namespace

Result<std::string> read_setting(const fs::path& path) {
  return core::read_file(path, {.max_bytes = std::uint64_t{16} << 20}).map([](std::string text) {
    text.erase(text.find_last_not_of(kSpace) + 1);
    text.erase(0, text.find_first_not_of(kSpace));
    return text;
  });
}

Result<std::int64_t> read_number(const fs::path& path) {
  FLEETFIT_ASSIGN(const auto text, read_setting(path));
  const auto number = to_number(text);
  if (number) return *number;
  return fail(ErrorCode::invalid_input,
              fmt::format("{}: \"{}\" is not a whole number", path.string(), text));
}

std::optional<std::string> find_setting(const fs::path& path) {
  auto text = read_setting(path);
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

std::optional<std::int64_t> find_number(const fs::path& path) {
  const auto number = read_number(path);
  return number ? std::optional(*number) : std::nullopt;
}

Status write_setting(const fs::path& path, std::string_view text) {
  const core::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file.is_open()) return cannot_write(path, errno);
  // In one piece: the kernel takes each as a setting of its own.
  const auto written = ::write(file.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return {};
  return cannot_write(path, written < 0 ? errno : EIO);
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace fleetfit::measure
