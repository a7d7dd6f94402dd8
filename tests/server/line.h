#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "fleetfit/core/file_descriptor.h"

namespace fleetfit::server {

/// A connection to a port of this machine; text goes in and comes out as it is.
class Line {
 public:
  /// `from`: an address of this machine's own, of which 127.0.0.0/8 are many.
  explicit Line(int port, const char* from = "127.0.0.1")
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, from, &address.sin_addr), 1);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  void send(const std::string& text) const {
    EXPECT_EQ(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }
  /// Until that text has come, or the line is closed.
  std::string read_until(const std::string& end) {
    while (text_.find(end) == std::string::npos) {
      char buffer[4096];
      const auto count = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (count <= 0) break;
      text_.append(buffer, static_cast<std::size_t>(count));
    }
    return text_;
  }
  std::string read_all() { return read_until("never sent"); }
  /// Whether the other end has closed it, and nothing more has come.
  bool is_closed() const {
    char octet = 0;
    const auto count = ::recv(fd_.get(), &octet, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
  }
  /// Without waiting.
  void read_what_is_there() {
    char buffer[4096];
    for (;;) {
      const auto count = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (count <= 0) return;
      text_.append(buffer, static_cast<std::size_t>(count));
    }
  }
  void forget() { text_.clear(); }

 private:
  core::FileDescriptor fd_;
  std::string text_;
};

}  // namespace fleetfit::server
