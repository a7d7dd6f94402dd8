#include "fleetfit/data/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "data/archive.h"
#include "data/sources.h"
#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"

namespace fleetfit::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ag_news_classes() { return {"World", "Sports", "Business", "Sci/Tech"}; }

/// A line each, without empty ones.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.emplace_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

Result<std::vector<std::string>> read_classes(const fs::path& folder) {
  const auto file = folder / "classes.txt";
  const auto text = core::read_file(file);
  if (!text && text.error().code == ErrorCode::not_found) return ag_news_classes();
  FLEETFIT_TRY(text);
  auto classes = lines_of(*text);
  if (classes.empty())
    return fail(ErrorCode::invalid_input, fmt::format("{}: there are no classes", file.string()));
  return classes;
}

Result<std::int64_t> label_of(const core::CsvTable& table, std::size_t row, std::size_t classes) {
  FLEETFIT_ASSIGN(const auto number, table.number(row, 0));
  if (number != std::round(number) || number < 1 || number > static_cast<double>(classes))
    return table.error_at(row, 0, fmt::format("class {:g} is none of 1 to {}", number, classes));
  return static_cast<std::int64_t>(number) - 1;
}

Status append_file(const fs::path& file, Texts& texts) {
  FLEETFIT_ASSIGN(auto content, unpacked(read_maybe_compressed(file), file.string()));
  return append_rows(std::move(content), file.string(), texts);
}

Texts pick(Texts all, const std::vector<std::size_t>& indices) {
  Texts some{.classes = std::move(all.classes)};
  for (const auto i : indices) {
    some.texts.push_back(std::move(all.texts[i]));
    some.labels.push_back(all.labels[i]);
  }
  return some;
}

/// Of a folder: its files, which say what is for testing.
Result<Texts> open_folder(const fs::path& folder, Split split, SplitOptions options) {
  FLEETFIT_ASSIGN(auto classes, read_classes(folder));
  Texts texts{.classes = std::move(classes)};
  if (split != Split::test) FLEETFIT_TRY(append_file(folder / "train.csv", texts));
  if (split == Split::test || split == Split::all)
    FLEETFIT_TRY(append_file(folder / "test.csv", texts));
  if (split == Split::test || split == Split::all) return texts;
  options.test_share = 0;
  const auto indices = chosen_items(texts.texts.size(), split, options);
  return pick(std::move(texts), indices);
}

Result<Texts> open_file(const fs::path& file, Split split, const SplitOptions& options) {
  FLEETFIT_ASSIGN(auto classes, read_classes(file.parent_path()));
  Texts texts{.classes = std::move(classes)};
  FLEETFIT_TRY(append_file(file, texts));
  const auto indices = chosen_items(texts.texts.size(), split, options);
  return pick(std::move(texts), indices);
}

bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || byte >= 0x80;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

Status append_rows(std::string content, const std::string& name, Texts& texts) {
  FLEETFIT_ASSIGN(
      const auto table,
      core::parse_csv(std::move(content), name, {.columns = {"class", "title", "description"}}));
  for (std::size_t row = 0; row < table.rows(); ++row) {
    FLEETFIT_ASSIGN(const auto label, label_of(table, row, texts.classes.size()));
    texts.labels.push_back(label);
    texts.texts.push_back(fmt::format("{} {}", table.cell(row, 1), table.cell(row, 2)));
  }
  return {};
}

Result<Texts> open_texts(std::string_view spec, Split split, const SplitOptions& options) {
  constexpr std::string_view kKind = "ag-news:";
  if (!spec.starts_with(kKind) || spec.size() == kKind.size())
    return fail(ErrorCode::invalid_input,
                fmt::format("'{}' are no texts; they are named by ag-news:PATH", spec));
  const fs::path path(spec.substr(kKind.size()));
  std::error_code ignored;
  auto texts = fs::is_directory(path, ignored) ? open_folder(path, split, options)
                                               : open_file(path, split, options);
  if (texts && texts->texts.empty())
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: there are no texts for '{}'", spec, to_string(split)));
  return texts;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_word_byte(text[i])) {
      word += lower(text[i]);
      continue;
    }
    const bool inside =
        text[i] == '\'' && !word.empty() && i + 1 < text.size() && is_word_byte(text[i + 1]);
    if (inside || word.empty()) continue;
    words.push_back(std::move(word));
    word.clear();
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

Vocabulary Vocabulary::most_frequent(std::span<const std::string> texts, std::size_t size) {
  std::map<std::string, std::size_t> counts;
  for (const auto& text : texts)
    for (auto& word : words_of(text)) ++counts[std::move(word)];
  std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, std::greater<>(), &std::pair<std::string, std::size_t>::second);
  order.resize(std::min(order.size(), size > 2 ? size - 2 : 0));
  Vocabulary vocabulary;
  for (auto& [word, count] : order) vocabulary.words_.push_back(std::move(word));
  vocabulary.number_words();
  return vocabulary;
}

void Vocabulary::number_words() {
  for (std::size_t i = 0; i < words_.size(); ++i)
    numbers_.emplace(words_[i], static_cast<std::int64_t>(i) + 2);
}

Result<Vocabulary> Vocabulary::parse(std::string_view text) {
  Vocabulary vocabulary;
  vocabulary.words_ = lines_of(text);
  vocabulary.number_words();
  if (vocabulary.numbers_.size() == vocabulary.words_.size()) return vocabulary;
  for (std::size_t i = 0; i < vocabulary.words_.size(); ++i) {
    if (vocabulary.number(vocabulary.words_[i]) != static_cast<std::int64_t>(i) + 2)
      return fail(ErrorCode::invalid_input,
                  fmt::format("line {}: '{}' is there twice", i + 1, vocabulary.words_[i]));
  }
  return vocabulary;
}

std::string Vocabulary::text() const {
  std::string text;
  for (const auto& word : words_) text += word + '\n';
  return text;
}

std::int64_t Vocabulary::number(std::string_view word) const {
  const auto found = numbers_.find(word);
  return found == numbers_.end() ? kUnknown : found->second;
}

std::vector<std::int64_t> Vocabulary::encode(std::string_view text, std::size_t length) const {
  std::vector<std::int64_t> numbers;
  for (const auto& word : words_of(text)) {
    if (numbers.size() == length) break;
    numbers.push_back(number(word));
  }
  numbers.resize(length, kPadding);
  return numbers;
}

}  // namespace fleetfit::data
