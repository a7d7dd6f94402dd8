#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fleetfit::space {

/// Which of its choices a gene has taken, from 0.
using Choice = std::uint16_t;

/// A design: one choice for each gene of its space.
using Design = std::span<const Choice>;

/// Designs of one space, row by row, in memory that somebody else owns.
class DesignBatch {
 public:
  DesignBatch() = default;
  /// `choices` holds whole rows of `genes` choices each; `genes` must be positive.
  DesignBatch(std::span<const Choice> choices, std::size_t genes)
      : choices_(choices), genes_(genes) {
    assert(choices.size() % genes == 0);
  }

  std::size_t size() const { return choices_.size() / genes_; }
  bool empty() const { return choices_.empty(); }
  std::size_t genes() const { return genes_; }
  std::span<const Choice> choices() const { return choices_; }

  Design operator[](std::size_t row) const { return choices_.subspan(row * genes_, genes_); }

  DesignBatch part(std::size_t first, std::size_t count) const {
    return {choices_.subspan(first * genes_, count * genes_), genes_};
  }

 private:
  std::span<const Choice> choices_;
  std::size_t genes_ = 1;
};

/// Designs of one space as one matrix of choices.
class Population {
 public:
  /// `size` designs of all zeros; `genes` must be positive.
  explicit Population(std::size_t genes, std::size_t size = 0)
      : genes_(genes), choices_(genes * size) {}

  std::size_t size() const { return choices_.size() / genes_; }
  std::size_t genes() const { return genes_; }

  std::span<Choice> operator[](std::size_t row) {
    return std::span(choices_).subspan(row * genes_, genes_);
  }
  Design operator[](std::size_t row) const { return batch()[row]; }

  void add(Design design) { choices_.insert(choices_.end(), design.begin(), design.end()); }
  void resize(std::size_t size) { choices_.resize(size * genes_); }

  DesignBatch batch() const { return {choices_, genes_}; }
  // NOLINTNEXTLINE(google-explicit-constructor): a population is read wherever a batch is
  operator DesignBatch() const { return batch(); }

  bool operator==(const Population&) const = default;

 private:
  std::size_t genes_;
  std::vector<Choice> choices_;
};

}  // namespace fleetfit::space
