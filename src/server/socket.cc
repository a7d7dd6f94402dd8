#include "server/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace fleetfit::server {
namespace {

constexpr int kBacklog = 1024;
constexpr std::size_t kMostAtOnce = std::size_t{64} << 10;
// Keys that a leak of the server's does not open later, and no CBC. TLS 1.3 has nothing else.
constexpr const char* kTls12Ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

tl::unexpected<Error> tls_problem(const std::filesystem::path& file, std::string_view what) {
  std::array<char, 200> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return fail(ErrorCode::invalid_input,
              fmt::format("{}: {} ({})", file.string(), what, text.data()));
}

/// A key that everybody on the machine can read is no secret.
Status check_secret(const std::filesystem::path& key) {
  std::error_code error;
  const auto permissions = std::filesystem::status(key, error).permissions();
  if (error || (permissions & std::filesystem::perms::others_all) == std::filesystem::perms::none)
    return {};
  return fail(
      ErrorCode::invalid_input,
      fmt::format("{0}: everybody on this machine can use this key: chmod 600 {0}", key.string()));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

std::uint16_t bound_port(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  std::array<char, NI_MAXSERV> port{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port.data(), port.size(),
                    NI_NUMERICSERV) != 0) {
    return 0;
  }
  return static_cast<std::uint16_t>(std::stoi(port.data()));
}

}  // namespace

Result<TlsContext> make_tls_context(const std::filesystem::path& certificate,
                                    const std::filesystem::path& key) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return fail(ErrorCode::internal, "OpenSSL cannot be used");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_set_cipher_list(context.get(), kTls12Ciphers) != 1)
    return fail(ErrorCode::internal, "OpenSSL has none of the ciphers");
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1)
    return tls_problem(certificate, "is no certificate in PEM");
  FLEETFIT_TRY(check_secret(key));
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    return tls_problem(key, "is no private key in PEM");
  if (SSL_CTX_check_private_key(context.get()) != 1)
    return tls_problem(key, "is not the certificate's key");
  return context;
}

Result<core::FileDescriptor> listen_on(Address& address) {
  const auto refused = [&](int error) {
    return fail(ErrorCode::io, fmt::format("{}: the address cannot be used: {}", to_text(address),
                                           core::system_message(error)));
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) !=
      0) {
    return refused(EINVAL);
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  core::FileDescriptor socket(
      ::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return refused(errno);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return refused(errno);
  }
  address.port = bound_port(socket.get());
  return socket;
}

Socket::Socket(core::FileDescriptor descriptor, SSL_CTX* tls) : descriptor_(std::move(descriptor)) {
  const int on = 1;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (tls == nullptr) return;
  tls_.reset(SSL_new(tls));
  if (!tls_) return;
  SSL_set_fd(tls_.get(), fd());
  SSL_set_accept_state(tls_.get());
}

Io Socket::outcome(int result) const {
  const int error = SSL_get_error(tls_.get(), result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return Io::wait_to_read;
  if (error == SSL_ERROR_WANT_WRITE) return Io::wait_to_write;
  return Io::closed;
}

Io Socket::shake_hands() {
  if (!tls_) return Io::done;
  ERR_clear_error();
  const int result = SSL_accept(tls_.get());
  return result == 1 ? Io::done : outcome(result);
}

Io Socket::read(std::string& buffer, std::size_t most) {
  // Not into the buffer itself: room for as much as may come would stay with each connection.
  std::array<char, kMostAtOnce>
      piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): is written
  most = std::min(most, piece.size());
  std::size_t count = 0;
  Io io = Io::done;
  if (tls_) {
    ERR_clear_error();
    const int result = SSL_read_ex(tls_.get(), piece.data(), most, &count);
    if (result != 1) io = outcome(result);
  } else {
    const auto received = ::recv(fd(), piece.data(), most, 0);
    if (received > 0) {
      count = static_cast<std::size_t>(received);
    } else {
      const bool later = received < 0 && (errno == EAGAIN || errno == EINTR);
      io = later ? Io::wait_to_read : Io::closed;
    }
  }
  if (io == Io::done) buffer.append(piece.data(), count);
  return io;
}

Io Socket::write(std::string_view bytes, std::size_t& written) {
  written = 0;
  if (bytes.empty()) return Io::done;
  if (tls_) {
    ERR_clear_error();
    const int result = SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &written);
    return result == 1 ? Io::done : outcome(result);
  }
  const auto sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) {
    written = static_cast<std::size_t>(sent);
    return Io::done;
  }
  return errno == EAGAIN || errno == EINTR ? Io::wait_to_write : Io::closed;
}

void Socket::hold_at_most(std::uint64_t bytes) const {
  const int size = static_cast<int>(bytes);
  ::setsockopt(fd(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

void Socket::drop_unsent() const {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

void Socket::shut_down() {
  if (tls_) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
    ERR_clear_error();
  }
  ::shutdown(fd(), SHUT_WR);
}

}  // namespace fleetfit::server
