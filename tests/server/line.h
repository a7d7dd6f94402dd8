#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "fleetfit/core/file_descriptor.h"

namespace fleetfit::server {

/// A connection to a port of this machine; text goes in and comes out as it is.
class Line {
 public:
  explicit Line(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
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
  void forget() { text_.clear(); }

 private:
  core::FileDescriptor fd_;
  std::string text_;
};

}  // namespace fleetfit::server
