#include "store/sql/postgres_store.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fleetfit/store/store.h"

namespace fleetfit::store {
namespace {

constexpr std::size_t kLongestSchema = 40;  // PostgreSQL's names have 63 characters

struct Parameter {
  std::string key = {};
  std::string text = {};  ///< as it stands, "key=value"
};

/// The parts of a URL: base?parameter&parameter.
struct Parts {
  std::string base = {};
  std::vector<Parameter> parameters = {};
};

std::size_t begin_of_user(std::string_view url) { return url.find("://") + 3; }

// Where `@` stands or, if nobody is named, the host begins. As libpq has it, the first one counts.
std::size_t end_of_user(std::string_view url) {
  const auto begin = begin_of_user(url);
  const auto at = url.find_first_of("@/", begin);
  return at != std::string_view::npos && url[at] == '@' ? at : begin;
}

std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr ==
            text.data() + i + 3;
    plain += is_escape ? static_cast<char>(value) : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

Parts split(std::string_view url) {
  Parts parts;
  const auto question = url.find('?', end_of_user(url));
  parts.base = url.substr(0, question);
  if (question == std::string_view::npos) return parts;
  std::string_view rest = url.substr(question + 1);
  while (!rest.empty()) {
    const auto end = rest.find('&');
    const auto text = rest.substr(0, end);
    parts.parameters.push_back(
        {.key = percent_decoded(text.substr(0, text.find('='))), .text = std::string(text)});
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return parts;
}

std::string join(const Parts& parts) {
  std::string url = parts.base;
  for (std::size_t i = 0; i < parts.parameters.size(); ++i)
    url += fmt::format("{}{}", i == 0 ? '?' : '&', parts.parameters[i].text);
  return url;
}

// Takes a parameter out; the last one of that name counts.
std::optional<std::string> take(Parts& parts, std::string_view key) {
  std::optional<std::string> value;
  for (const auto& parameter : parts.parameters)
    if (parameter.key == key)
      value = percent_decoded(
          parameter.text.substr(std::min(parameter.text.find('='), parameter.text.size() - 1) + 1));
  std::erase_if(parts.parameters, [&](const Parameter& one) { return one.key == key; });
  return value;
}

bool is_plain_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name.size() <= kLongestSchema && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c); });
}

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

tl::unexpected<Error> refused(std::string_view problem) {
  return fail(ErrorCode::invalid_input, fmt::format("store postgres: {}", problem));
}

// What libpq reads out of the URL.
Result<std::map<std::string, std::string>> options_of(const std::string& url) {
  char* problem = nullptr;
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(
      PQconninfoParse(url.c_str(), &problem));
  PQfreemem(problem);  // not shown: it quotes the text
  if (!options)
    return refused(
        "the URL cannot be read; expected postgres://USER@HOST:PORT/DATABASE?sslmode=… with odd "
        "characters written as %XX");
  std::map<std::string, std::string> values;
  for (const auto* option = options.get(); option->keyword != nullptr; ++option)
    if (option->val != nullptr) values[option->keyword] = option->val;
  return values;
}

std::string name_of(const std::map<std::string, std::string>& options) {
  const auto value = [&](const std::string& key) {
    const auto found = options.find(key);
    return found == options.end() ? std::string() : found->second;
  };
  const auto host = value("host");
  const auto port = value("port");
  const bool is_socket = host.starts_with('/');
  return fmt::format("postgres://{}{}/{}", is_socket ? "" : host,
                     port.empty() || is_socket ? "" : ":" + port, value("dbname"));
}

}  // namespace

bool is_postgres(std::string_view url) {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

Result<PostgresAddress> parse_postgres(std::string_view url) {
  if (url.find('\0') != std::string_view::npos) return refused("the URL contains a NUL character");
  auto parts = split(url);
  const auto schema = take(parts, "schema").value_or("fleetfit");
  if (!is_plain_name(schema))
    return refused(
        fmt::format("the schema's name has to be of at most {} small letters, digits and "
                    "underscores, beginning with a letter",
                    kLongestSchema));
  auto plain = join(parts);
  FLEETFIT_ASSIGN(const auto options, options_of(plain));
  return PostgresAddress{.url = std::move(plain), .schema = schema, .name = name_of(options)};
}

StoreAddress without_password(std::string_view url) {
  if (!is_postgres(url)) return {.url = std::string(url)};
  auto parts = split(url);
  const auto in_parameters = take(parts, "password");
  StoreAddress address{.password = in_parameters.value_or("")};
  const auto begin = begin_of_user(parts.base);
  const auto end = end_of_user(parts.base);
  const auto colon = parts.base.find(':', begin);
  if (colon < end) {
    if (!in_parameters)
      address.password = percent_decoded(parts.base.substr(colon + 1, end - colon - 1));
    parts.base.erase(colon, end - colon);
  }
  address.url = join(parts);
  return address;
}

}  // namespace fleetfit::store
