#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/design_count.h"

/// Spaces of networks and their designs; docs/spaces.md describes each of them.
namespace fleetfit::space {

/// One decision that a design takes.
struct Gene {
  std::string name = {};                  ///< "block 3 kernel"
  std::vector<std::string> choices = {};  ///< their texts; at least one, all different
  /// What the choices stand for if they are amounts (3, 5, 7), else empty.
  std::vector<double> values = {};
  std::string before = {};  ///< stands before the choice in the design's text
};

/// A way to write designs as numbers for a predictor.
struct Encoding {
  std::string name = {};
  std::vector<std::string> features = {};  ///< names of the columns
};

/// A set of networks. A design has a choice for each gene; genes that mean nothing under the
/// choices before them are inactive and 0, so that one network is not written in several ways.
///
/// Adding a space is one file: a class with its genes, `is_active` where genes depend on each
/// other, `size`, and `lower`; a line in registry.cc. Immutable; safe to use from many threads.
class Space {
 public:
  virtual ~Space() = default;
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  const std::string& name() const { return name_; }
  const std::string& description() const { return description_; }  ///< one line
  std::span<const Gene> genes() const { return genes_; }

  /// Changes when a design's text means another network than before, so that numbers measured for
  /// the old one are not taken for those of the new one.
  virtual int version() const { return 1; }

  /// Whether the gene means anything. Depends on the choices of the genes before it alone.
  virtual bool is_active(Design design, std::size_t gene) const;

  /// How many designs there are.
  virtual DesignCount size() const;

  /// Fails with `invalid_input`, naming the gene, on a choice that does not exist, on an inactive
  /// gene that is not 0 and on a wrong number of genes.
  Status check(Design design) const;

  /// Sets inactive genes to 0.
  void make_canonical(std::span<Choice> design) const;

  /// Fills in a random design.
  void sample(core::Random& random, std::span<Choice> design) const;

  /// Gives each active gene another choice with this probability; genes that become active are
  /// drawn anew.
  void mutate(core::Random& random, double probability, std::span<Choice> design) const;

  /// Each gene from one parent or the other; genes that are active in neither are drawn anew.
  void crossover(core::Random& random, Design a, Design b, std::span<Choice> child) const;

  /// The first design is all zeros. Changes a design to the next one in the order of its genes;
  /// false after the last. All designs can be visited so where `size` allows it.
  bool next(std::span<Choice> design) const;

  /// The first one, "genes", is the same for all spaces: the amount of a gene that has amounts,
  /// else a column for each choice with a 1 for the one that was taken; inactive genes are 0.
  std::span<const Encoding> encodings() const { return encodings_; }

  /// `not_found` if there is no encoding of that name.
  Result<std::size_t> find_encoding(std::string_view name) const;

  /// Writes a row of features for each design into `out`, which has room for just that.
  void encode(DesignBatch designs, std::size_t encoding, std::span<double> out) const;

  /// The network, with random weights that are the same each time. Fails as `check` does.
  Result<graph::Graph> lower(Design design) const;

  /// The design's text: the choices of all active genes. The same text means the same design.
  std::string format(Design design) const;

  /// Reads what `format` wrote. Errors are `invalid_input` and name the gene.
  Result<std::vector<Choice>> parse(std::string_view text) const;

  /// Key columns of tables of this space; a design has a cell in each.
  virtual std::vector<std::string> columns() const { return {"design"}; }
  virtual std::vector<std::string> cells(Design design) const { return {format(design)}; }
  virtual Result<std::vector<Choice>> parse_cells(std::span<const std::string_view> cells) const;

 protected:
  struct Description {
    std::string name;
    std::string line;
  };
  Space(Description description, std::vector<Gene> genes);

  /// Builds the network of a design that was checked.
  virtual Result<graph::Graph> build(Design design) const = 0;

  /// A random choice of a gene, by default each alike.
  virtual Choice draw(core::Random& random, std::size_t gene) const;

  /// Writes the features of one design in an encoding that was added.
  virtual void encode_one(Design design, std::size_t encoding, std::span<double> out) const;
  void add_encoding(Encoding encoding) { encodings_.push_back(std::move(encoding)); }

 private:
  void encode_genes(Design design, std::span<double> out) const;
  Status check_gene(Design design, std::size_t gene) const;

  std::string name_;
  std::string description_;
  std::vector<Gene> genes_;
  std::vector<Encoding> encodings_;
};

/// All spaces, by name.
std::span<const std::unique_ptr<const Space>> spaces();

/// `not_found`, with the names of those that there are.
Result<const Space*> find_space(std::string_view name);

struct SampleOptions {
  std::uint64_t seed = 1;
  std::size_t first = 0;  ///< number of the first design
  std::size_t count = 0;
};

/// Random designs, all different. Design number i depends on space and seed alone, whatever else
/// is asked for. Fails with `invalid_input` if the space has not as many.
Result<Population> sample_designs(const Space& space, const SampleOptions& options);

}  // namespace fleetfit::space
