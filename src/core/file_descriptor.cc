#include "fleetfit/core/file_descriptor.h"

#include <unistd.h>

#include <system_error>

namespace fleetfit::core {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  FileDescriptor taken(std::move(other));
  std::swap(fd_, taken.fd_);
  return *this;
}

void FileDescriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool write_all(const FileDescriptor& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written =
        retry_interrupted([&] { return ::write(fd.get(), bytes.data(), bytes.size()); });
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string system_message(int error) { return std::generic_category().message(error); }

}  // namespace fleetfit::core
