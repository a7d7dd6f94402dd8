#include "graph/ncnn/param_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace fleetfit::graph::ncnn {
namespace {

constexpr std::string_view kMagic = "7767517";
constexpr std::string_view kBinaryMagic{"\xDD\x85\x76\x00", 4};  // 7767517 in little endian
constexpr int kArrayBase = -23300;  // parameter -23300 - id is the list with this id
constexpr int kMostIds = 100;

using Tokens = std::vector<std::string_view>;

Tokens split(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  Tokens tokens;
  for (auto start = line.find_first_not_of(kBlanks); start != line.npos;) {
    const auto end = line.find_first_of(kBlanks, start);
    tokens.push_back(line.substr(start, end - start));
    start = line.find_first_not_of(kBlanks, end);
  }
  return tokens;
}

/// Gives the lines that are not blank, with their numbers from 1.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::optional<Tokens> next() {
    while (!rest_.empty()) {
      const auto end = rest_.find('\n');
      auto tokens = split(rest_.substr(0, end));
      rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
      ++number_;
      if (!tokens.empty()) return tokens;
    }
    return std::nullopt;
  }

  int number() const { return number_; }

 private:
  std::string_view rest_;
  int number_ = 0;
};

template <class T>
std::optional<T> read(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool looks_integer(std::string_view text) { return text.find_first_of(".eE") == text.npos; }

std::optional<double> read_number(std::string_view text) {
  if (looks_integer(text)) {
    const auto whole = read<std::int32_t>(text);
    return whole ? std::optional<double>(*whole) : std::nullopt;
  }
  const auto number = read<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

/// The parts between commas.
Tokens split_list(std::string_view text) {
  Tokens items;
  for (;;) {
    const auto comma = text.find(',');
    items.push_back(text.substr(0, comma));
    if (comma == text.npos) return items;
    text.remove_prefix(comma + 1);
  }
}

/// "n,v1,…,vn" for lists; the value itself otherwise.
Result<Param> read_value(std::string_view text, bool is_array) {
  auto items = split_list(text);
  if (is_array) {
    const auto count = read<std::int32_t>(items.front());
    items.erase(items.begin());
    if (!count || *count < 0 || static_cast<std::size_t>(*count) != items.size()) {
      return refuse("its first number is not the number of values that follow");
    }
  } else if (items.size() != 1) {
    return refuse("it is a list, but its number says that it is a single value");
  }
  Param param{.is_array = is_array};
  for (const auto item : items) {
    const auto number = read_number(item);
    if (!number) return refuse(fmt::format("'{}' is no 32-bit number", item));
    param.numbers.push_back(*number);
    param.is_integer = param.is_integer && looks_integer(item);
  }
  return param;
}

Status read_param(std::string_view token, Params& params) {
  const auto equals = token.find('=');
  const auto key = read<std::int32_t>(token.substr(0, equals));
  if (equals == token.npos || !key)
    return refuse(fmt::format("'{}' is no parameter (number=value)", token));
  const bool is_array = *key <= kArrayBase;
  const auto id = is_array ? kArrayBase - *key : *key;
  if (id < 0 || id >= kMostIds) return refuse(fmt::format("there is no parameter {}", *key));
  auto value = read_value(token.substr(equals + 1), is_array);
  if (!value) return core::within(fmt::format("parameter '{}'", token), value.error());
  if (!params.insert(id, std::move(*value)))
    return refuse(fmt::format("parameter {} is given twice", id));
  return {};
}

Status read_blobs_and_params(const Tokens& tokens, Layer& layer) {
  const auto inputs = read<std::int32_t>(tokens[2]);
  const auto outputs = read<std::int32_t>(tokens[3]);
  if (!inputs || !outputs || *inputs < 0 || *outputs < 0)
    return refuse(
        fmt::format("'{} {}' are no numbers of inputs and outputs", tokens[2], tokens[3]));
  const auto first = tokens.begin() + 4;
  if (std::int64_t{*inputs} + *outputs > tokens.end() - first)
    return refuse(
        fmt::format("{} inputs and {} outputs are more than the line names", *inputs, *outputs));
  layer.inputs.assign(first, first + *inputs);
  layer.outputs.assign(first + *inputs, first + *inputs + *outputs);
  for (auto token = first + *inputs + *outputs; token != tokens.end(); ++token) {
    FLEETFIT_TRY(read_param(*token, layer.params));
  }
  return {};
}

Result<Layer> read_layer(const Tokens& tokens, int line) {
  if (tokens.size() < 4) {
    return refuse(fmt::format(
        "line {}: a layer has a type, a name and its numbers of inputs and outputs", line));
  }
  Layer layer{.line = line, .type = tokens[0], .name = tokens[1]};
  if (auto read = read_blobs_and_params(tokens, layer); !read)
    return core::within(place(layer), read.error());
  return layer;
}

Status check_magic(std::string_view text, Lines& lines) {
  if (text.starts_with(kBinaryMagic))
    return refuse("this is a binary ncnn graph (.param.bin); the text form (.param) is needed");
  const auto tokens = lines.next();
  if (!tokens || tokens->size() != 1 || tokens->front() != kMagic)
    return refuse(
        fmt::format("line {}: the file does not begin with {}, so it is no text graph of "
                    "ncnn",
                    std::max(lines.number(), 1), kMagic));
  return {};
}

bool is_whole(double number) { return std::nearbyint(number) == number; }

}  // namespace

std::int64_t Params::integer(const IntegerKey& key) {
  const auto found = values_.find(key.id);
  if (found == values_.end()) return key.fallback;
  const auto& param = found->second;
  const auto number = param.numbers.empty() ? 0.5 : param.numbers.front();
  if (param.is_array || !is_whole(number)) {
    keep(fmt::format("parameter {} ({}) is no whole number", key.id, key.name));
    return key.fallback;
  }
  if (number < static_cast<double>(key.low) || number > static_cast<double>(key.high)) {
    keep(fmt::format("parameter {} ({}) is {}, which is not in {}..{}", key.id, key.name, number,
                     key.low, key.high));
    return key.fallback;
  }
  return static_cast<std::int64_t>(number);
}

bool Params::flag(int id, std::string_view name, std::int64_t fallback) {
  return integer({.id = id,
                  .name = name,
                  .fallback = fallback,
                  .low = std::numeric_limits<std::int32_t>::min()}) != 0;
}

float Params::number(int id, std::string_view name, float fallback) {
  const auto found = values_.find(id);
  if (found == values_.end()) return fallback;
  const auto& param = found->second;
  const auto largest = static_cast<double>(std::numeric_limits<float>::max());
  if (param.is_array || param.numbers.empty() || std::abs(param.numbers.front()) > largest) {
    keep(fmt::format("parameter {} ({}) is no 32-bit number", id, name));
    return fallback;
  }
  return static_cast<float>(param.numbers.front());
}

std::vector<std::int64_t> Params::by_axis(int spatial, IntegerKey key) {
  const auto width = integer(key);
  if (spatial == 1) return {width};
  key.id += 10;
  key.fallback = width;
  return {integer(key), width};
}

std::vector<std::int64_t> Params::integers(int id, std::string_view name) {
  std::vector<std::int64_t> result;
  for (const auto number : numbers(id)) {
    if (!is_whole(number) || std::abs(number) > std::numeric_limits<std::int32_t>::max()) {
      keep(fmt::format("parameter {} ({}) holds {}, which is no 32-bit whole number", id, name,
                       number));
      return {};
    }
    result.push_back(static_cast<std::int64_t>(number));
  }
  return result;
}

std::vector<double> Params::numbers(int id) {
  const auto found = values_.find(id);
  return found == values_.end() ? std::vector<double>{} : found->second.numbers;
}

void Params::keep(std::string message) {
  if (status_) status_ = refuse(std::move(message));
}

std::string place(const Layer& layer) {
  return fmt::format("line {}: layer {}", layer.line, layer.name);
}

Result<std::vector<Layer>> parse_param_text(std::string_view text) {
  Lines lines(text);
  FLEETFIT_TRY(check_magic(text, lines));

  const auto counts = lines.next();
  const auto layer_count =
      counts && counts->size() == 2 ? read<std::int32_t>(counts->front()) : std::nullopt;
  const auto blob_count = layer_count ? read<std::int32_t>(counts->back()) : std::nullopt;
  if (!blob_count || *layer_count < 1 || *blob_count < 1) {
    return refuse(
        fmt::format("line {}: expected the numbers of layers and of blobs", lines.number()));
  }

  // Like ncnn, reads as many layers as announced and leaves what follows.
  std::vector<Layer> layers;
  while (layers.size() < static_cast<std::size_t>(*layer_count)) {
    const auto tokens = lines.next();
    if (!tokens) {
      return refuse(fmt::format("line {}: the file announces {} layers and ends after {}",
                                lines.number(), *layer_count, layers.size()));
    }
    FLEETFIT_ASSIGN(auto layer, read_layer(*tokens, lines.number()));
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace fleetfit::graph::ncnn
