#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "fleetfit/server/http_api.h"

/// What stands before the bodies of HTTP/1.1, read strictly: what could be understood in two ways
/// is refused.
namespace fleetfit::server {

inline constexpr std::size_t kMostHeadBytes = std::size_t{16} << 10;

struct HttpHead {
  std::string method = {};
  std::string path = {};
  std::string query = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< names in small letters
  std::uint64_t content_length = 0;
  bool is_1_0 = false;  ///< HTTP/1.0
  bool keep_alive = true;
  bool expects_continue = false;

  /// Empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpProblem {
  int status = 400;
  std::string message = {};
};

/// Up to and with the empty line; nothing if that has not come yet.
std::optional<std::size_t> head_length(std::string_view text);

/// Whether what has come so far cannot become a head any more: a line ends in a line feed alone, or
/// there is a zero octet.
bool cannot_be_head(std::string_view text);

/// `text` ends with the empty line.
tl::expected<HttpHead, HttpProblem> parse_head(std::string_view text);

struct ReplyFlags {
  bool keep_alive = true;
  bool secure = false;
};

/// Status line and headers. Without a length the body goes on until the connection is closed.
std::string format_head(const ApiReply& reply, std::optional<std::uint64_t> length,
                        const ReplyFlags& flags);

}  // namespace fleetfit::server
