#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/server/http_api.h"
#include "server/http_head.h"
#include "server/socket.h"
#include "server/upload_file.h"

namespace fleetfit::server {

using Moment = std::chrono::steady_clock::time_point;

/// What the head of a request says, for the API.
ApiRequest request_of(const HttpHead& head, const std::string& peer);

/// How long who asks may take.
struct Patience {
  std::chrono::milliseconds handshake = std::chrono::seconds(10);
  std::chrono::milliseconds idle = std::chrono::seconds(75);  ///< between two requests
  std::chrono::milliseconds head = std::chrono::seconds(10);
  std::chrono::milliseconds body = std::chrono::seconds(30);
  std::chrono::milliseconds pause = std::chrono::seconds(30);  ///< of an upload or of an answer
  std::chrono::milliseconds drain = std::chrono::seconds(2);
};

/// What connections work with. Borrows the API.
struct HttpSurroundings {
  HttpApi& api;
  std::filesystem::path incoming = {};  ///< folder for uploads
  bool secure = false;
  Patience patience = {};
  std::size_t most_streams = 300;
  std::atomic<std::size_t> streams = 0;
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
  ~HttpConnection();

  std::mutex& mutex() { return mutex_; }
  int fd() const { return socket_.fd(); }

  /// Does all that can be done now.
  Want advance(Moment now);

  /// When it has taken too long; `advance` then ends it.
  Moment deadline() const { return deadline_.load(); }
  /// A request has begun and is not answered yet.
  bool is_busy() const { return busy_.load(); }

  bool is_closed() const { return closed_; }
  void close() { closed_ = true; }

  /// Of a stream of events.
  bool is_stream() const { return phase_ == Phase::stream; }
  std::int64_t last_event() const { return last_event_; }
  void push(const std::vector<StreamedEvent>& events, Moment now);
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
  bool keep_alive_ = true;
  std::uint64_t body_left_ = 0;
  std::unique_ptr<UploadFile> upload_;
  core::FileDescriptor file_;  // whose content is sent
  std::uint64_t file_left_ = 0;

  bool counts_as_stream_ = false;
  std::int64_t last_event_ = 0;
  Moment last_sign_;
  Moment last_check_;
};

}  // namespace fleetfit::server
