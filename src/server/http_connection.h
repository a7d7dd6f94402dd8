#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/server/client_limits.h"
#include "fleetfit/server/http_api.h"
#include "fleetfit/server/network.h"
#include "server/clients/client_ledger.h"
#include "server/http_head.h"
#include "server/socket.h"
#include "server/upload_file.h"

namespace fleetfit::server {

using Moment = std::chrono::steady_clock::time_point;

/// What the head of a request says, for the API.
ApiRequest request_of(const HttpHead& head, const std::string& peer);

/// What connections work with. Borrows the API.
struct HttpSurroundings {
  HttpApi& api;
  std::filesystem::path incoming = {};  ///< folder for uploads
  bool secure = false;
  Patience patience = {};
  ClientLimits limits = {};
  std::vector<Network> trusted_proxies = {};
  ClientLedger ledger{limits};
};

/// What would be lost if a connection were given up.
enum class Standing : std::uint8_t {
  idle,        ///< waits between two requests
  unfinished,  ///< no request is here yet
  busy,        ///< a request is being answered
  stream
};

/// What a connection waits for.
enum class Want : std::uint8_t { read, write, close };

/// One connection: requests come in and are answered, one after the other, without ever waiting.
/// All but `deadline` and `is_busy` is to be called with `mutex` held.
class HttpConnection {
 public:
  HttpConnection(Socket socket, std::string peer, HttpSurroundings& surroundings, Moment now);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection() = default;

  std::mutex& mutex() { return mutex_; }
  int fd() const { return socket_.fd(); }

  /// Does all that can be done now. What is read first has begun to come by `since`.
  Want advance(Moment now, Moment since);
  Standing standing() const;

  /// When it has taken too long; `advance` then ends it.
  Moment deadline() const { return deadline_.load(); }
  /// A request has begun and is not answered yet.
  bool is_busy() const { return busy_.load(); }

  bool is_closed() const { return closed_; }
  void close() { closed_ = true; }
  /// Without waiting for what the other end does not take.
  void give_up();

  /// Of a stream of events.
  bool is_stream() const { return phase_ == Phase::stream; }
  std::int64_t last_event() const { return last_event_; }
  /// As many of them as may wait to be sent; the others are to be pushed again later.
  void push(const std::vector<StreamedEvent>& events, Moment now);
  std::uint64_t unsent_bytes() const { return out_.size() - written_; }
  bool takes_events() const { return unsent_bytes() < surroundings_.limits.stream_bytes; }
  /// Sends a sign of life if nothing was sent for a while, and ends the stream when the token may
  /// not be used any more.
  void look_after_stream(Moment now);

 private:
  enum class Phase : std::uint8_t { handshake, head, body, reply, stream, drain };
  enum class Step : std::uint8_t { go_on, wait_to_read, wait_to_write, close };

  Step take_step();
  Step shake_hands();
  Step read_head();
  Step read_body();
  Step write_reply();
  Step write_stream();
  Step drain();
  Step start_request(std::size_t head_bytes);
  Step start_body(const HttpHead& head, const Admission& admission);
  Step take_body();
  Step answer();
  Step refuse_for_now(std::string_view message);
  Step refuse(int status, std::string_view message);
  Step end_with(const ApiReply& reply);
  Step send(const ApiReply& reply);
  Step send_file(const ApiReply& reply);
  Step start_stream(const ApiReply& reply);
  Step end_reply();
  bool refill();
  Step late();
  /// Writes what is to be written; done if all was.
  Io flush();
  void allow(std::chrono::milliseconds time) { deadline_ = now_ + time; }

  std::mutex mutex_;
  Socket socket_;
  std::string peer_;
  HttpSurroundings& surroundings_;
  std::atomic<Moment> deadline_;
  std::atomic<bool> busy_ = false;
  bool closed_ = false;
  Phase phase_ = Phase::handshake;
  Moment now_;

  std::string in_;
  std::string out_;
  std::size_t written_ = 0;  // of out_
  ApiRequest request_;
  std::unique_ptr<ClientLedger::Claim> claim_;  // of the request
  std::optional<Moment> since_;                 // of what was not read yet
  bool keep_alive_ = true;
  std::uint64_t body_left_ = 0;
  std::unique_ptr<UploadFile> upload_;
  core::FileDescriptor file_;  // whose content is sent
  std::uint64_t file_left_ = 0;

  std::int64_t last_event_ = 0;
  Moment last_sign_;
  Moment last_check_;
};

}  // namespace fleetfit::server
