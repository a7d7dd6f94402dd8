#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace fleetfit::server {

/// What those that ask may hold of a server. All agents of a site may come from one address, so
/// that what one may have is generous; it is less than all, so that others always get in.
struct ClientLimits {
  std::size_t all_connections = 8'000;
  std::size_t connections = 1'024;                        ///< of an address
  std::size_t requests = 1'024;                           ///< of an address, on their way
  std::uint64_t all_bytes = std::uint64_t{128} << 20;     ///< of bodies and answers, in memory
  std::uint64_t bytes = std::uint64_t{64} << 20;          ///< of an address
  std::size_t all_streams = 300;                          ///< of events
  std::size_t streams = 200;                              ///< of an address
  std::uint64_t stream_bytes = std::uint64_t{256} << 10;  ///< of a stream, not sent yet
  std::uint64_t all_stream_bytes = std::uint64_t{16} << 20;
};

/// How long who asks may take.
struct Patience {
  std::chrono::milliseconds handshake = std::chrono::seconds(10);
  std::chrono::milliseconds idle = std::chrono::seconds(75);  ///< between two requests
  std::chrono::milliseconds head = std::chrono::seconds(10);
  std::chrono::milliseconds body = std::chrono::seconds(30);
  std::chrono::milliseconds pause = std::chrono::seconds(30);  ///< of an upload or of an answer
  std::chrono::milliseconds drain = std::chrono::seconds(2);
};

}  // namespace fleetfit::server
