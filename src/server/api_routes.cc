#include "server/api_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace fleetfit::server {
namespace {

constexpr std::string_view kAny = "admin viewer agent";
constexpr std::string_view kPeople = "admin viewer";
constexpr std::string_view kAdmin = "admin";
constexpr std::string_view kAgent = "agent";
constexpr std::string_view kPage = "limit after";

constexpr std::array kRoutes = {
    Route{"GET", "/health", "", "", Body::none, get_health},
    Route{"GET", "/openapi.json", kAny, "", Body::none, get_openapi},
    Route{"POST", "/session", "", "", Body::json, post_session},
    Route{"GET", "/session", kAny, "", Body::none, get_session},
    Route{"DELETE", "/session", kAny, "", Body::none, delete_session},
    Route{"GET", "/tokens", kAdmin, kPage, Body::none, get_tokens},
    Route{"POST", "/tokens", kAdmin, "", Body::json, post_token},
    Route{"DELETE", "/tokens/{id}", kAdmin, "", Body::none, delete_token},
    Route{"GET", "/audit", kAdmin, kPage, Body::none, get_audit},
    Route{"GET", "/summary", kPeople, "", Body::none, get_summary, true},
    Route{"GET", "/devices", kPeople, "limit after state query", Body::none, get_devices, true},
    Route{"POST", "/devices", kAdmin, "", Body::json, post_device},
    Route{"GET", "/devices/{name}", kPeople, "", Body::none, get_device},
    Route{"DELETE", "/devices/{name}", kAdmin, "", Body::none, delete_device},
    Route{"GET", "/devices/{name}/pareto", kPeople, "model", Body::none, get_pareto},
    Route{"GET", "/models", kPeople, kPage, Body::none, get_models},
    Route{"GET", "/files", kPeople, "limit kind", Body::none, get_files},
    Route{"POST", "/files", kAdmin, "name", Body::file, post_file},
    Route{"GET", "/files/{hash}", kAny, "device", Body::none, get_file},
    Route{"GET", "/latencies", kPeople, "models devices", Body::none, get_latencies},
    Route{"GET", "/correlations", kPeople, "space devices", Body::none, get_correlations},
    Route{"GET", "/measurements", kPeople, "limit device model", Body::none, get_measurements},
    Route{"GET", "/measurements/{id}", kPeople, "", Body::none, get_measurement},
    Route{"GET", "/jobs", kPeople, "limit after state device", Body::none, get_jobs},
    Route{"POST", "/jobs", kAdmin, "", Body::json, post_job},
    Route{"GET", "/jobs/{id}", kPeople, "", Body::none, get_job},
    Route{"DELETE", "/jobs/{id}", kAdmin, "", Body::none, delete_job},
    Route{"GET", "/studies", kPeople, kPage, Body::none, get_studies},
    Route{"GET", "/studies/{name}", kPeople, "", Body::none, get_study},
    Route{"GET", "/studies/{name}/trials", kPeople, kPage, Body::none, get_trials},
    Route{"GET", "/studies/{name}/charts", kPeople, "", Body::none, get_charts},
    Route{"GET", "/events", kPeople, "limit after device kind job", Body::none, get_events},
    Route{"GET", "/events/stream", kPeople, "after", Body::none, get_event_stream},
    Route{"POST", "/agent/register", kAgent, "device", Body::json, post_register},
    Route{"POST", "/agent/heartbeat", kAgent, "device", Body::json, post_heartbeat},
    Route{"POST", "/agent/claim", kAgent, "device", Body::json, post_claim},
    Route{"POST", "/agent/results", kAgent, "device", Body::results, post_results},
    Route{"POST", "/agent/events", kAgent, "device", Body::results, post_events},
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const auto end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Length of the UTF-8 character that begins there; 0 if there is none.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  const auto goes_on = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; };
  return std::ranges::all_of(text.substr(1, length - 1), goes_on) ? length : 0;
}

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const auto length = character_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (length == 0 || first < ' ' || first == 0x7f) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

std::vector<RouteDescription> describe_routes() {
  std::vector<RouteDescription> all;
  for (const auto& route : kRoutes)
    all.push_back({route.method, route.pattern, route.roles, route.query});
  return all;
}

std::optional<std::string> decode_url(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (!is_plain_text(decoded)) return std::nullopt;
  return decoded;
}

std::optional<std::vector<std::string>> split_path(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  std::vector<std::string> parts;
  for (const auto raw : split(path.substr(1), '/')) {
    auto part = decode_url(raw);
    if (!part || part->empty() || *part == "." || *part == ".." ||
        part->find_first_of("/\\") != std::string::npos) {
      return std::nullopt;
    }
    parts.push_back(*std::move(part));
  }
  return parts;
}

std::optional<std::vector<std::string>> match(std::string_view pattern,
                                              std::span<const std::string> path) {
  const auto wanted = split(pattern.substr(1), '/');
  if (wanted.size() != path.size()) return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].starts_with('{')) {
      names.push_back(path[i]);
    } else if (wanted[i] != path[i]) {
      return std::nullopt;
    }
  }
  return names;
}

Result<std::int64_t> parse_id(const std::string& text, std::string_view what) {
  std::int64_t id = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), id);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || id < 1)
    return fail(ErrorCode::not_found, fmt::format("there is no {} {}", what, text));
  return id;
}

Result<Query> Query::parse(std::string_view text, std::string_view known) {
  Query query;
  if (text.empty()) return query;
  const auto names = split(known, ' ');
  for (const auto part : split(text, '&')) {
    const auto equals = std::min(part.find('='), part.size());
    std::string raw(part.substr(std::min(equals + 1, part.size())));
    std::ranges::replace(raw, '+', ' ');
    auto name = decode_url(part.substr(0, equals));
    auto value = decode_url(raw);
    if (!name || !value)
      return fail(ErrorCode::invalid_input, "the part behind '?' cannot be decoded");
    if (name->empty() || std::ranges::find(names, *name) == names.end()) {
      return fail(ErrorCode::invalid_input,
                  known.empty() ? fmt::format("?{}: nothing can be asked for here", *name)
                                : fmt::format("?{}: known here: {}", *name, known));
    }
    if (!query.values_.emplace(*name, *std::move(value)).second)
      return fail(ErrorCode::invalid_input, fmt::format("?{}: is there twice", *name));
  }
  return query;
}

std::optional<std::string> Query::find(std::string_view name) const {
  const auto at = values_.find(name);
  if (at == values_.end() || at->second.empty()) return std::nullopt;
  return at->second;
}

Result<std::int64_t> Query::integer(std::string_view name, std::int64_t fallback,
                                    const core::IntegerRange& range) const {
  const auto text = find(name);
  if (!text) return fallback;
  std::int64_t number = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), number);
  if (read.ec != std::errc() || read.ptr != text->data() + text->size() || number < range.min ||
      number > range.max) {
    return fail(ErrorCode::invalid_input, fmt::format("?{}: expected a whole number from {} to {}",
                                                      name, range.min, range.max));
  }
  return number;
}

std::vector<std::string> Query::list(std::string_view name) const {
  std::vector<std::string> items;
  const auto text = find(name);
  if (!text) return items;
  for (const auto part : split(*text, ','))
    if (!part.empty()) items.emplace_back(part);
  return items;
}

Result<std::size_t> Query::limit() const {
  constexpr std::int64_t kDefault = 100;
  constexpr std::int64_t kMost = 1000;
  return integer("limit", kDefault, {.min = 1, .max = kMost}).map([](std::int64_t limit) {
    return static_cast<std::size_t>(limit);
  });
}

}  // namespace fleetfit::server
