#include "fleetfit/fleet/client.h"

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/sigpipe.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::fleet {
namespace {

constexpr std::size_t kMostReply = std::size_t{64} << 20;
constexpr std::size_t kMostError = std::size_t{64} << 10;
constexpr std::string_view kRoot = "/api/v1";
constexpr double kLongestWaitS = 3600;

struct Address {
  std::string scheme = {};
  std::string host = {};
  std::string origin = {};  ///< scheme, host and port, without a slash at its end
};

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") &&
          std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); }));
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
  return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size() &&
         port > 0;
}

Result<Address> parse_address(std::string_view url) {
  const auto wrong = [&](std::string_view why) {
    return refuse(fmt::format("server {}: {}", url, why));
  };
  Address address;
  if (url.ends_with('/')) url.remove_suffix(1);
  address.origin = url;
  const auto colon = url.find("://");
  if (colon == std::string_view::npos) return wrong("expected https://HOST:PORT");
  address.scheme = url.substr(0, colon);
  if (address.scheme != "https" && address.scheme != "http")
    return wrong("expected https://HOST:PORT");
  auto host = url.substr(colon + 3);
  if (host.find_first_of("/@?# \t\r\n") != std::string_view::npos)
    return wrong("expected a host and a port, and nothing else");
  const auto bracket = host.rfind(']');
  const auto port = host.rfind(':');
  if (port != std::string_view::npos && (bracket == std::string_view::npos || port > bracket)) {
    if (!is_port(host.substr(port + 1))) return wrong("the port is no number from 1 to 65535");
    host = host.substr(0, port);
  }
  if (host.empty()) return wrong("there is no host");
  if (address.scheme == "http" && !is_loopback(host))
    return wrong("a token goes to another machine over https alone");
  address.host = host;
  return address;
}

Status check_token(std::string_view token) {
  const bool good = !token.empty() && token.size() <= 1000 &&
                    std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; });
  if (good) return {};
  return refuse("the token is empty or has characters that no token has");
}

/// SHA-256 of what comes piece by piece.
class Digest {
 public:
  Digest() : context_(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free) {
    ::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr);
  }
  void add(std::string_view bytes) {
    ::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned int size = 0;
    ::EVP_DigestFinal_ex(context_.get(), bytes.data(), &size);
    std::string text;
    for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> context_;
};

/// What a server says that it refused; its own sentence if there is one.
std::string problem_in(const std::string& body, int status) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("error")) {
    const auto& error = json["error"];
    if (error.is_object() && error.contains("message") && error["message"].is_string())
      return error["message"];
  }
  return fmt::format("the server answered with status {}", status);
}

double retry_after(const httplib::Response& response) {
  const auto text = response.get_header_value("Retry-After");
  double seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (read.ec != std::errc() || !(seconds > 0)) return 0;
  return std::min(seconds, kLongestWaitS);
}

std::string what_failed(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
      return "there is no connection";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not one that is trusted here";
    case httplib::Error::SSLConnection:
      return "there is no connection by TLS";
    case httplib::Error::SSLLoadingCerts:
      return "the certificate to trust cannot be read";
    case httplib::Error::Read:
      return "it did not answer";
    case httplib::Error::Write:
      return "it did not take the request";
    case httplib::Error::Canceled:
      return "the answer was not taken";
    default:
      return httplib::to_string(error);
  }
}

/// An answer, read piece by piece: `take` gets what a good one holds, the rest is kept for the
/// error.
struct Receiver {
  std::function<bool(std::string_view)> take;
  int status = 0;
  double retry_after_s = 0;
  std::string error_body = {};

  bool receive(std::string_view bytes) {
    constexpr int kGood = 200;
    if (status / 100 * 100 == kGood) return take(bytes);
    if (error_body.size() + bytes.size() > kMostError) return true;
    error_body += bytes;
    return true;
  }
};

class HttpClient final : public Client {
 public:
  HttpClient(const ClientOptions& options, const Address& address)
      : address_(address),
        device_(options.device),
        most_bytes_(options.max_download_bytes),
        http_(address.origin) {
    const auto timeout = std::chrono::microseconds(std::llround(options.timeout_s * 1e6));
    http_.set_connection_timeout(timeout);
    http_.set_read_timeout(timeout);
    http_.set_write_timeout(timeout);
    http_.set_keep_alive(true);
    http_.set_tcp_nodelay(true);
    http_.set_url_encode(false);
    http_.set_decompress(true);
    http_.set_bearer_token_auth(options.token);
    if (!options.authority.empty()) http_.set_ca_cert_path(options.authority.string());
  }

  Reply get(std::string_view path) override { return call("GET", path, {}); }
  Reply remove(std::string_view path) override { return call("DELETE", path, {}); }
  Reply post(std::string_view path, const nlohmann::json& body) override {
    httplib::Request request;
    request.body = core::format_json_line(body);
    request.set_header("Content-Type", "application/json");
    return call("POST", path, std::move(request));
  }

  Reply upload(std::string_view path, const std::filesystem::path& file) override {
    const auto mapped = core::MappedFile::open(file);
    if (!mapped) return tl::unexpected(CallError{.status = 400, .message = mapped.error().message});
    const auto bytes = mapped->bytes();
    httplib::Request request;
    request.set_header("Content-Type", "application/octet-stream");
    request.content_length_ = bytes.size();
    request.content_provider_ = [bytes](std::size_t offset, std::size_t length,
                                        httplib::DataSink& sink) {
      return sink.write(reinterpret_cast<const char*>(bytes.data()) + offset, length);
    };
    return call("POST", path, std::move(request));
  }

  tl::expected<void, CallError> download(std::string_view hash,
                                         const std::filesystem::path& file) override;

 private:
  std::string full_path(std::string_view path) const {
    auto full = fmt::format("{}{}", kRoot, path);
    const bool of_device = path.starts_with("/agent/") || path.starts_with("/files/");
    if (of_device && !device_.empty())
      full += (path.find('?') == std::string_view::npos ? "?device=" : "&device=") + device_;
    return full;
  }

  tl::expected<void, CallError> send(std::string_view method, std::string_view path,
                                     httplib::Request request, Receiver& receiver);
  Reply call(std::string_view method, std::string_view path, httplib::Request request);

  Address address_;
  std::string device_;
  std::int64_t most_bytes_;
  httplib::Client http_;
};

tl::expected<void, CallError> HttpClient::send(std::string_view method, std::string_view path,
                                               httplib::Request request, Receiver& receiver) {
  constexpr int kGood = 200;
  request.method = method;
  request.path = full_path(path);
  request.response_handler = [&](const httplib::Response& response) {
    receiver.status = response.status;
    receiver.retry_after_s = retry_after(response);
    return true;
  };
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    return receiver.receive({data, size});
  };
  httplib::Response response;
  httplib::Error error = httplib::Error::Success;
  bool sent = false;
  {
    const core::SigpipeBlocked blocked;
    sent = http_.send(request, response, error);
  }
  if (!sent) {
    return tl::unexpected(
        CallError{.message = fmt::format("{}: {}", address_.origin, what_failed(error))});
  }
  if (response.status / 100 * 100 == kGood) return {};
  // An answer without a body has passed no receiver.
  return tl::unexpected(CallError{.status = response.status,
                                  .message = problem_in(receiver.error_body, response.status),
                                  .retry_after_s = retry_after(response)});
}

Client::Reply HttpClient::call(std::string_view method, std::string_view path,
                               httplib::Request request) {
  std::string body;
  Receiver receiver{.take = [&](std::string_view bytes) {
    if (body.size() + bytes.size() > kMostReply) return false;
    body += bytes;
    return true;
  }};
  FLEETFIT_TRY(send(method, path, std::move(request), receiver));
  if (body.empty()) return nlohmann::json::object();
  auto json = core::parse_json(body, "answer", {.max_bytes = kMostReply});
  if (!json)
    return tl::unexpected(CallError{
        .message = fmt::format("{} {}: {}", method, path, std::move(json.error().message))});
  return *std::move(json);
}

tl::expected<void, CallError> HttpClient::download(std::string_view hash,
                                                   const std::filesystem::path& file) {
  const auto refused = [](std::string message) {
    return tl::unexpected(CallError{.status = 400, .message = std::move(message)});
  };
  if (const auto ok = check_hash(hash); !ok) return refused(ok.error().message);
  auto writer = core::FileWriter::open(file);
  if (!writer) return refused(std::move(writer.error().message));
  Digest digest;
  std::int64_t received = 0;
  std::optional<Error> failure;
  Receiver receiver{.take = [&](std::string_view bytes) {
    received += static_cast<std::int64_t>(bytes.size());
    digest.add(bytes);
    auto written =
        received <= most_bytes_
            ? writer->write(bytes)
            : refuse(fmt::format("file {}: it has more than {} bytes", hash, most_bytes_));
    if (!written) failure = written.error();
    return !failure;
  }};
  auto sent = send("GET", fmt::format("/files/{}", hash), {}, receiver);
  if (failure) return refused(std::move(failure->message));
  if (!sent) return sent;
  if (const auto found = digest.hex(); found != hash)
    return refused(fmt::format("file {}: what the server sent has the hash {}", hash, found));
  if (auto written = writer->commit(); !written) return refused(written.error().message);
  return {};
}

}  // namespace

Result<std::unique_ptr<Client>> make_client(const ClientOptions& options) {
  FLEETFIT_ASSIGN(const auto address, parse_address(options.server));
  FLEETFIT_TRY(check_token(options.token));
  if (!options.device.empty()) {
    if (auto ok = check_name(options.device); !ok) return core::within("device", ok.error());
  }
  if (!(options.timeout_s > 0) || options.timeout_s > kLongestWaitS)
    return refuse(fmt::format("timeout: {} s is not above 0 and up to 3600", options.timeout_s));
  if (!options.authority.empty()) {
    // A wrong file would otherwise be noticed with the first call alone.
    FLEETFIT_TRY(core::read_file(options.authority));
  }
  return std::make_unique<HttpClient>(options, address);
}

}  // namespace fleetfit::fleet
