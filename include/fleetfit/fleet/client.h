#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"

/// Calling a server's API.
namespace fleetfit::fleet {

struct ClientOptions {
  std::string server = {};  ///< "https://host:8443"; plain http on loopback alone
  std::string token = {};
  std::filesystem::path authority = {};  ///< certificate to trust instead of the system's
  std::string device = {};  ///< which one an agent is: sent with its calls and downloads
  double timeout_s = 30;    ///< without a byte
  std::int64_t max_download_bytes = std::int64_t{1} << 40;
};

/// What went wrong with a call: whether it is worth trying again.
struct CallError {
  int status = 0;  ///< of HTTP; 0: there was no answer
  std::string message = {};
  double retry_after_s = 0;  ///< if the server has said so

  /// No answer, too many calls, or a failure of the server itself.
  bool passing() const { return status == 0 || status == 429 || status >= 500; }
};

/// Safe to use from one thread at a time. Messages never hold the token.
class Client {
 public:
  virtual ~Client() = default;

  using Reply = tl::expected<nlohmann::json, CallError>;
  /// Paths are under /api/v1: "/jobs?state=waiting".
  virtual Reply get(std::string_view path) = 0;
  virtual Reply post(std::string_view path, const nlohmann::json& body) = 0;
  virtual Reply remove(std::string_view path) = 0;
  /// Sends a file's octets.
  virtual Reply upload(std::string_view path, const std::filesystem::path& file) = 0;
  /// Writes the file whole, or not at all, and checks that its SHA-256 is `hash`.
  virtual tl::expected<void, CallError> download(std::string_view hash,
                                                 const std::filesystem::path& file) = 0;
};

/// Fails with `invalid_input` on another URL, plain http to another machine, or a token that is
/// none; nothing is sent yet.
Result<std::unique_ptr<Client>> make_client(const ClientOptions& options);

}  // namespace fleetfit::fleet
