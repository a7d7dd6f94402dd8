#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/result.h"
#include "fleetfit/server/address.h"

/// Sockets that never wait, with TLS or without.
namespace fleetfit::server {

struct FreeTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* connection) const { SSL_free(connection); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTls>;

/// TLS 1.2 or later. Fails with `invalid_input`, naming the file, if certificate or key cannot be
/// used.
Result<TlsContext> make_tls_context(const std::filesystem::path& certificate,
                                    const std::filesystem::path& key);

/// Listens; `address.port` becomes the one that it is. Fails with `io`.
Result<core::FileDescriptor> listen_on(Address& address);

/// What reading or writing has come to.
enum class Io : std::uint8_t { done, wait_to_read, wait_to_write, closed };

/// A connection with somebody. Belongs to one thread at a time.
class Socket {
 public:
  /// `tls` is borrowed; nothing: without.
  Socket(core::FileDescriptor descriptor, SSL_CTX* tls);

  int fd() const { return descriptor_.get(); }
  bool has_tls() const { return tls_ != nullptr; }

  /// The beginning of TLS.
  Io shake_hands();
  /// Adds what has come to `buffer`, at most `most` bytes.
  Io read(std::string& buffer, std::size_t most);
  /// `written`: how much of it was.
  Io write(std::string_view bytes, std::size_t& written);
  /// So many bytes that were written but not taken by the other end, and no more.
  void hold_at_most(std::uint64_t bytes) const;
  /// What the other end has not taken yet is dropped when the socket is closed.
  void drop_unsent() const;
  /// Says goodbye.
  void shut_down();

 private:
  Io outcome(int result) const;

  core::FileDescriptor descriptor_;
  std::unique_ptr<SSL, FreeTls> tls_;
};

}  // namespace fleetfit::server
