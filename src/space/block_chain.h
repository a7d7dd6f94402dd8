#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fleetfit/space/space.h"

namespace fleetfit::space {

/// Blocks in sequence with channels of their own: a block's input is as wide as the output of the
/// one before it. A gene for the first input, then kernel, middle and output of each block, where
/// the middle is either an expansion or a number of channels. Each block has four slots: input,
/// kernel, middle and output.
class BlockChain {
 public:
  struct Block {
    std::vector<std::int64_t> kernels;
    std::vector<std::int64_t> middles;
    std::vector<std::int64_t> outputs;
  };

  struct Middle {
    std::string name;    ///< "expansion"
    std::string prefix;  ///< of a choice's text: "e"
  };

  BlockChain(std::vector<std::int64_t> inputs, std::vector<Block> blocks, Middle middle)
      : inputs_(std::move(inputs)), blocks_(std::move(blocks)), middle_(std::move(middle)) {}

  std::vector<Gene> genes() const;
  std::vector<Slot> slots() const;

  std::size_t size() const { return blocks_.size(); }

  // What a design chose.
  std::int64_t first_input(Design design) const { return inputs_[design[0]]; }
  std::int64_t kernel(Design design, std::size_t block) const;
  std::int64_t middle(Design design, std::size_t block) const;
  std::int64_t output(Design design, std::size_t block) const;

 private:
  std::vector<std::int64_t> inputs_;
  std::vector<Block> blocks_;
  Middle middle_;
};

}  // namespace fleetfit::space
