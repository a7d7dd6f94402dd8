#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"

/// Labelled texts, and how they become the input of a network. docs/formats/datasets.md has the
/// files.
namespace fleetfit::data {

struct Texts {
  std::vector<std::string> texts = {};
  std::vector<std::int64_t> labels = {};
  std::vector<std::string> classes = {};
};

/// Opens `ag-news:PATH`: a folder with train.csv and test.csv (and classes.txt, where the classes
/// have other names than AG News'), or one such file, which is then split by the seed; each as it
/// is or as .gz. Rows are class from 1 on, title, description, without a header. Errors as
/// `open_dataset`; those in a file name its line.
Result<Texts> open_texts(std::string_view spec, Split split, const SplitOptions& options = {});

/// The words of a text: runs of letters, digits and bytes beyond ASCII, in lower case. An
/// apostrophe inside a word is left out.
std::vector<std::string> words_of(std::string_view text);

/// Numbers for words. Immutable.
class Vocabulary {
 public:
  static constexpr std::int64_t kPadding = 0;  ///< behind the end of a text
  static constexpr std::int64_t kUnknown = 1;  ///< a word that has no number

  /// The words that occur most often, the first of the alphabet among equals, until there are
  /// `size` numbers with the two above.
  static Vocabulary most_frequent(std::span<const std::string> texts, std::size_t size);

  /// Reads what `text` wrote. `invalid_input`, naming the line, if it is no vocabulary.
  static Result<Vocabulary> parse(std::string_view text);

  /// A word in each line, in the order of the numbers from 2 on.
  std::string text() const;

  std::size_t size() const { return words_.size() + 2; }
  std::int64_t number(std::string_view word) const;

  /// The numbers of the first words of a text, padded to `length`.
  std::vector<std::int64_t> encode(std::string_view text, std::size_t length) const;

 private:
  void number_words();

  std::vector<std::string> words_;
  std::map<std::string, std::int64_t, std::less<>> numbers_;
};

}  // namespace fleetfit::data
