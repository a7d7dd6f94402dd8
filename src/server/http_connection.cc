#include "server/http_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "server/clients/forwarded.h"

namespace fleetfit::server {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr auto kSignOfLife = std::chrono::seconds(15);
constexpr auto kCheckToken = std::chrono::seconds(60);
constexpr int kMostSteps = 200;  // then others have their turn

/// An empty value of a standard type that has just been assigned keeps the memory that it had.
template <class T>
void free_memory_of(T& value) {
  const T ended = std::exchange(value, T());
}

}  // namespace

ApiRequest request_of(const HttpHead& head, const std::string& peer) {
  return {.method = head.method,
          .path = head.path,
          .query = head.query,
          .host = std::string(head.header("host")),
          .origin = std::string(head.header("origin")),
          .authorization = std::string(head.header("authorization")),
          .cookie = std::string(head.header("cookie")),
          .content_type = std::string(head.header("content-type")),
          .from_page = std::string(head.header("x-fleetfit")),
          .last_event_id = std::string(head.header("last-event-id")),
          .if_none_match = std::string(head.header("if-none-match")),
          .peer = peer};
}

HttpConnection::HttpConnection(Socket socket, std::string peer, HttpSurroundings& surroundings,
                               Moment now)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      surroundings_(surroundings),
      deadline_(now + surroundings.patience.handshake),
      now_(now),
      last_sign_(now),
      last_check_(now) {}

Standing HttpConnection::standing() const {
  switch (phase_) {
    case Phase::head:
      return in_.empty() ? Standing::idle : Standing::unfinished;
    case Phase::reply:
      return Standing::busy;
    case Phase::stream:
      return Standing::stream;
    case Phase::handshake:
    case Phase::body:
    case Phase::drain:
      break;
  }
  return Standing::unfinished;
}

void HttpConnection::give_up() {
  if (unsent_bytes() > 0) socket_.drop_unsent();
  close();
}

Want HttpConnection::advance(Moment now, Moment since) {
  now_ = now;
  since_ = since;
  Step step = Step::go_on;
  if (now > deadline_.load()) step = late();
  for (int i = 0; i < kMostSteps && step == Step::go_on; ++i) step = take_step();
  switch (step) {
    case Step::wait_to_read:
      return Want::read;
    case Step::go_on:
      // Whatever can be done next can be done once more bytes can be written; mostly at once.
    case Step::wait_to_write:
      return Want::write;
    case Step::close:
      break;
  }
  return Want::close;
}

HttpConnection::Step HttpConnection::take_step() {
  switch (phase_) {
    case Phase::handshake:
      return shake_hands();
    case Phase::head:
      return read_head();
    case Phase::body:
      return read_body();
    case Phase::reply:
      return write_reply();
    case Phase::stream:
      return write_stream();
    case Phase::drain:
      break;
  }
  return drain();
}

HttpConnection::Step HttpConnection::late() {
  const bool is_asking = (phase_ == Phase::head && !in_.empty()) || phase_ == Phase::body;
  if (!is_asking) return Step::close;
  return refuse(408, "the request took too long");
}

HttpConnection::Step HttpConnection::shake_hands() {
  switch (socket_.shake_hands()) {
    case Io::done:
      phase_ = Phase::head;
      allow(surroundings_.patience.head);
      return Step::go_on;
    case Io::wait_to_read:
      return Step::wait_to_read;
    case Io::wait_to_write:
      return Step::wait_to_write;
    case Io::closed:
      break;
  }
  return Step::close;
}

HttpConnection::Step HttpConnection::read_head() {
  if (const auto length = head_length(in_)) return start_request(*length);
  if (cannot_be_head(in_)) return refuse(400, "a line of the head is broken");
  if (in_.size() >= kMostHeadBytes) return refuse(431, "the head of the request is too large");
  const bool is_first = in_.empty();
  const auto io = socket_.read(in_, kMostHeadBytes);
  if (io == Io::done) {
    if (is_first) allow(surroundings_.patience.head);
    return Step::go_on;
  }
  if (io == Io::closed) return Step::close;
  return io == Io::wait_to_write ? Step::wait_to_write : Step::wait_to_read;
}

HttpConnection::Step HttpConnection::start_request(std::size_t head_bytes) {
  busy_ = true;
  const auto head = parse_head(std::string_view(in_).substr(0, head_bytes));
  in_.erase(0, head_bytes);
  request_ = {};
  if (!head) return refuse(head.error().status, head.error().message);
  const auto address = asking_address(*head, peer_, surroundings_.trusted_proxies);
  request_ = request_of(*head, address);
  request_.body_bytes = head->content_length;
  request_.since = std::exchange(since_, std::nullopt);
  keep_alive_ = head->keep_alive;
  claim_ = surroundings_.ledger.claim(address);
  if (!claim_) return refuse_for_now("too many requests of this address are on their way");
  auto admission = surroundings_.api.admit(request_);
  if (admission.refused && head->content_length > 0) return end_with(*admission.refused);
  if (head->content_length > admission.most_bytes) {
    if (admission.most_bytes == 0) return refuse(400, "no body is expected here");
    return refuse(413, fmt::format("the body is larger than {} bytes", admission.most_bytes));
  }
  if (head->content_length == 0) return answer();
  return start_body(*head, admission);
}

HttpConnection::Step HttpConnection::start_body(const HttpHead& head, const Admission& admission) {
  body_left_ = head.content_length;
  phase_ = Phase::body;
  allow(admission.to_file ? surroundings_.patience.pause : surroundings_.patience.body);
  if (!admission.to_file && !claim_->take(head.content_length))
    return refuse_for_now("too much is on its way");
  if (head.expects_continue && in_.empty()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  if (!admission.to_file) return Step::go_on;
  auto upload = UploadFile::create(surroundings_.incoming);
  if (!upload) return refuse(500, "the server cannot keep files");
  upload_ = *std::move(upload);
  return Step::go_on;
}

/// What has come of the body goes to where it belongs.
HttpConnection::Step HttpConnection::take_body() {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(in_.size(), body_left_));
  const auto part = std::string_view(in_).substr(0, count);
  if (upload_) {
    if (auto ok = upload_->write(part); !ok) return refuse(500, "the server cannot keep files");
    if (count > 0) allow(surroundings_.patience.pause);
  } else {
    request_.body += part;
  }
  in_.erase(0, count);
  body_left_ -= count;
  return Step::go_on;
}

HttpConnection::Step HttpConnection::read_body() {
  const auto flushed = flush();
  if (flushed == Io::closed) return Step::close;
  if (flushed == Io::wait_to_write) return Step::wait_to_write;
  if (take_body() != Step::go_on || phase_ != Phase::body) return Step::go_on;
  if (body_left_ == 0) return answer();
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, body_left_));
  const auto io = socket_.read(in_, most);
  if (io == Io::closed) return Step::close;
  if (io == Io::done) return Step::go_on;
  return io == Io::wait_to_write ? Step::wait_to_write : Step::wait_to_read;
}

HttpConnection::Step HttpConnection::answer() {
  if (upload_) {
    auto upload = upload_->finish();
    upload_.reset();
    if (!upload) return refuse(500, "the server cannot keep files");
    request_.upload = *std::move(upload);
  }
  const auto reply = surroundings_.api.answer(request_);
  if (request_.upload) {
    std::error_code ignored;
    std::filesystem::remove(request_.upload->file, ignored);
  }
  // What was done for small answers is done; a large one can be asked for again.
  if (reply.body.size() > kPiece && !claim_->take(reply.body.size()))
    return refuse_for_now("too much is on its way");
  return send(reply);
}

HttpConnection::Step HttpConnection::refuse_for_now(std::string_view message) {
  auto reply = surroundings_.api.refuse(503, "too_many", message);
  reply.headers.emplace_back("Retry-After", "1");
  return end_with(reply);
}

HttpConnection::Step HttpConnection::refuse(int status, std::string_view message) {
  const auto code = status == 413 ? "too_large" : status == 408 ? "too_slow" : "invalid_input";
  return end_with(surroundings_.api.refuse(status, code, message));
}

/// What follows on the line cannot be understood, or is not wanted.
HttpConnection::Step HttpConnection::end_with(const ApiReply& reply) {
  keep_alive_ = false;
  upload_.reset();
  return send(reply);
}

HttpConnection::Step HttpConnection::send(const ApiReply& reply) {
  phase_ = Phase::reply;
  allow(surroundings_.patience.pause);
  if (reply.events_after) return start_stream(reply);
  if (reply.file) return send_file(reply);
  const bool has_no_body = reply.status == 304;
  const auto length = has_no_body ? std::nullopt : std::optional<std::uint64_t>(reply.body.size());
  out_ += format_head(reply, length, {.keep_alive = keep_alive_, .secure = surroundings_.secure});
  if (request_.method != "HEAD" && !has_no_body) out_ += reply.body;
  return Step::go_on;
}

HttpConnection::Step HttpConnection::send_file(const ApiReply& reply) {
  file_ = core::FileDescriptor(::open(reply.file->c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about = {};
  if (!file_.is_open() || ::fstat(file_.get(), &about) != 0) {
    file_.close();
    return send(surroundings_.api.refuse(500, "internal", "the file is gone"));
  }
  file_left_ = request_.method == "HEAD" ? 0 : static_cast<std::uint64_t>(about.st_size);
  out_ += format_head(reply, static_cast<std::uint64_t>(about.st_size),
                      {.keep_alive = keep_alive_, .secure = surroundings_.secure});
  return Step::go_on;
}

HttpConnection::Step HttpConnection::start_stream(const ApiReply& reply) {
  keep_alive_ = false;
  if (!claim_->become_stream()) {
    auto busy = surroundings_.api.refuse(503, "too_many", "there are too many streams of events");
    busy.headers.emplace_back("Retry-After", "30");
    return send(busy);
  }
  out_ += format_head(reply, std::nullopt, {.keep_alive = false, .secure = surroundings_.secure});
  out_ += "retry: 3000\n\n";
  socket_.hold_at_most(surroundings_.limits.stream_bytes);
  last_event_ = *reply.events_after;
  last_sign_ = now_;
  last_check_ = now_;
  phase_ = Phase::stream;
  busy_ = false;
  return Step::go_on;
}

Io HttpConnection::flush() {
  while (written_ < out_.size()) {
    std::size_t count = 0;
    const auto io = socket_.write(std::string_view(out_).substr(written_), count);
    if (io == Io::wait_to_read) return Io::closed;  // nobody renegotiates
    if (io != Io::done) return io;
    written_ += count;
    if (written_ > kPiece && written_ > out_.size() / 2) {
      out_.erase(0, written_);
      written_ = 0;
    }
    if (phase_ == Phase::reply || phase_ == Phase::stream) allow(surroundings_.patience.pause);
  }
  out_.clear();
  written_ = 0;
  return Io::done;
}

/// The next piece of a file; false if it cannot be read.
bool HttpConnection::refill() {
  out_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, file_left_)));
  const auto count = ::read(file_.get(), out_.data(), out_.size());
  if (count <= 0) return false;
  out_.resize(static_cast<std::size_t>(count));
  file_left_ -= static_cast<std::uint64_t>(count);
  return true;
}

HttpConnection::Step HttpConnection::write_reply() {
  const auto io = flush();
  if (io == Io::wait_to_write) return Step::wait_to_write;
  if (io != Io::done) return Step::close;
  if (file_left_ == 0) return end_reply();
  return refill() ? Step::go_on : Step::close;
}

HttpConnection::Step HttpConnection::end_reply() {
  file_.close();
  busy_ = false;
  claim_.reset();
  free_memory_of(request_);
  free_memory_of(out_);
  if (in_.empty()) free_memory_of(in_);
  if (keep_alive_) {
    phase_ = Phase::head;
    allow(in_.empty() ? surroundings_.patience.idle : surroundings_.patience.head);
    return Step::go_on;
  }
  socket_.shut_down();
  phase_ = Phase::drain;
  allow(surroundings_.patience.drain);
  return Step::go_on;
}

/// Reads what is still coming, as closing now would take the answer back.
HttpConnection::Step HttpConnection::drain() {
  in_.clear();
  const auto io = socket_.read(in_, kPiece);
  if (io == Io::done) return Step::go_on;
  return io == Io::wait_to_read ? Step::wait_to_read : Step::close;
}

HttpConnection::Step HttpConnection::write_stream() {
  const auto flushed = flush();
  if (flushed == Io::wait_to_write) return Step::wait_to_write;
  if (flushed != Io::done) return Step::close;
  deadline_ = Moment::max();
  in_.clear();
  const auto io = socket_.read(in_, kPiece);
  if (io == Io::done) return Step::go_on;
  return io == Io::wait_to_read ? Step::wait_to_read : Step::close;
}

void HttpConnection::push(const std::vector<StreamedEvent>& events, Moment now) {
  now_ = now;
  for (const auto& event : events) {
    if (event.id <= last_event_) continue;
    if (!takes_events() && flush() == Io::closed) closed_ = true;
    if (!takes_events() || closed_) return;
    out_ += fmt::format("id: {}\ndata: {}\n\n", event.id, event.json);
    last_event_ = event.id;
    last_sign_ = now;
  }
  if (flush() == Io::closed) closed_ = true;  // what stays is what the other end does not take
}

void HttpConnection::look_after_stream(Moment now) {
  if (now - last_sign_ > kSignOfLife) {
    out_ += ":\n\n";
    last_sign_ = now;
  }
  if (now - last_check_ < kCheckToken) return;
  last_check_ = now;
  if (surroundings_.api.admit(request_).refused) closed_ = true;
}

}  // namespace fleetfit::server
