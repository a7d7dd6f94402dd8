#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

/// File descriptors, and what goes with the system calls that take them.
namespace fleetfit::core {

/// Owns a file descriptor: closes it at the end. Also holds what a call that failed gave, -1.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { close(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

/// Repeats a system call that a signal interrupted.
template <class Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Writes all of `bytes`, in as many pieces as it takes. If it gives false, `errno` says why.
bool write_all(const FileDescriptor& fd, std::string_view bytes);

/// The system's sentence for an `errno` value.
std::string system_message(int error);

}  // namespace fleetfit::core
