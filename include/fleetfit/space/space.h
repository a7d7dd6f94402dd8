#pragma once

#include <bitset>
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
  std::size_t column = 0;   ///< which of the space's key columns it stands in
};

/// A place in the network that holds one operator, which one or several genes choose together.
/// Nothing is there while one of them is inactive.
struct Slot {
  std::string name = {};                ///< "block 3"
  std::vector<std::size_t> genes = {};  ///< at least one
  /// What each joint choice puts there (the choices of the last gene change first). A kind has the
  /// same name wherever it stands, so that it can be counted. Empty: the genes name them.
  std::vector<std::string> kinds = {};
};

inline constexpr std::size_t kMostSlots = 256;
using SlotSet = std::bitset<kMostSlots>;

/// A way to write designs as numbers for a predictor.
struct Encoding {
  std::string name = {};
  std::vector<std::string> features = {};  ///< names of the columns
};

/// A set of networks. A design has a choice for each gene; genes that mean nothing under the
/// choices before them are inactive and 0, so that one network is not written in several ways.
///
/// Adding a space is one file: a class with its genes, `is_active` and `size` where genes depend on
/// each other, `live_slots` where parts of a network can work for nothing, and `build`; a line in
/// registry.cc. Immutable; safe to use from many threads.
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

  /// The first active gene from this one on; the number of genes if there is none. A space in which
  /// most genes are inactive may know a quicker way.
  virtual std::size_t next_active(Design design, std::size_t gene) const;

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
  /// drawn at random.
  void mutate(core::Random& random, double probability, std::span<Choice> design) const;

  /// Each gene from one parent or the other; genes that are active in neither are drawn at random.
  void crossover(core::Random& random, Design a, Design b, std::span<Choice> child) const;

  /// The first design is all zeros. Changes a design to the next one in the order of its genes;
  /// false after the last. All designs can be visited so where `size` allows it.
  bool next(std::span<Choice> design) const;

  /// All spaces have
  /// - "genes": the amount of a gene that has amounts, else a column for each choice with a 1 for
  ///   the one that was taken; inactive genes are 0;
  /// - "one-hot": a column for each joint choice of each slot, a 1 for the one that was taken, 0
  ///   where nothing is; at the end a constant 1 for what all networks have;
  /// - "live": the same, but 0 for slots that work for nothing;
  /// - "counts": how often each kind of operator occurs; if networks of the space can have slots
  ///   that work for nothing, also how often without those. Where a gene has more choices than can
  ///   be distinguished so, the sum of its amounts.
  std::span<const Encoding> encodings() const { return encodings_; }

  /// `not_found` if there is no encoding of that name.
  Result<std::size_t> find_encoding(std::string_view name) const;

  /// Writes a row of features for each design into `out`, which has room for just that.
  void encode(DesignBatch designs, std::size_t encoding, std::span<double> out) const;

  std::span<const Slot> slots() const { return slots_; }

  /// Slots in which something is: all of their genes are active. A space may know a quicker way.
  virtual SlotSet active_slots(Design design) const;

  /// Active slots whose operator gets an input and has a way to the output: what is left by a
  /// runtime that removes dead paths.
  virtual SlotSet live_slots(Design design) const { return active_slots(design); }

  /// Whether parts of its networks can work for nothing.
  bool can_have_dead_paths() const { return dead_paths_ == DeadPaths::possible; }

  /// For the encodings "one-hot" and "live": writes the numbers of the columns that are 1 into
  /// `out`, which has room for one more than there are slots, and returns how many there are. Much
  /// quicker than whole rows for callers that add up weights.
  std::size_t taken_columns(Design design, std::size_t encoding,
                            std::span<std::uint32_t> out) const;

  /// What a column of "one-hot" adds to which feature of "counts".
  struct Count {
    std::uint32_t kind;
    double amount;
  };

  /// For each column of "one-hot" but the constant at its end. A column of "live" adds the same to
  /// the live count, which stands behind all others.
  std::span<const Count> column_counts() const { return counts_; }

  /// The network, with random weights that are the same each time. Fails as `check` does.
  Result<graph::Graph> lower(Design design) const;

  /// The design's text: the choices of all active genes. The same text means the same design.
  std::string format(Design design) const;

  /// Reads what `format` wrote. Errors are `invalid_input` and name the gene.
  Result<std::vector<Choice>> parse(std::string_view text) const;

  /// Key columns of tables of this space; a design has a cell in each. If there are several, a cell
  /// holds a choice for each of its genes, inactive ones too: those are written as their first
  /// choice and not looked at when read.
  const std::vector<std::string>& columns() const { return columns_; }
  std::vector<std::string> cells(Design design) const;
  Result<std::vector<Choice>> parse_cells(std::span<const std::string_view> cells) const;

 protected:
  enum class DeadPaths : std::uint8_t { never, possible };

  struct Description {
    std::string name;
    std::string line;
    std::vector<std::string> columns = {"design"};
    DeadPaths dead_paths = DeadPaths::never;  ///< whether live and active slots can differ
  };

  /// Without slots, each gene is one.
  Space(Description description, std::vector<Gene> genes, std::vector<Slot> slots = {});

  /// Builds the network of a design that was checked.
  virtual Result<graph::Graph> build(Design design) const = 0;

  /// A random choice of a gene, by default each alike.
  virtual Choice draw(core::Random& random, std::size_t gene) const;

  /// What `draw` gives in another space, for spaces that are made of others.
  static Choice draw_in(const Space& other, core::Random& random, std::size_t gene) {
    return other.draw(random, gene);
  }

  /// Writes the features of one design in an encoding that was added.
  virtual void encode_one(Design design, std::size_t encoding, std::span<double> out) const;
  void add_encoding(Encoding encoding) { encodings_.push_back(std::move(encoding)); }

 private:
  void encode_genes(Design design, std::span<double> out) const;
  void encode_ones(Design design, std::size_t encoding, std::span<double> out) const;
  void encode_counts(Design design, std::span<double> out) const;
  void add_one_hot_encodings();
  void add_counts_encoding();
  std::size_t joint_choices(const Slot& slot) const;
  std::size_t joint_choice(Design design, const Slot& slot) const;
  std::string joint_text(const Slot& slot, std::size_t joint) const;
  std::vector<std::pair<std::string, double>> kinds_of(const Slot& slot) const;
  std::string cell(Design design, std::size_t column) const;
  Status parse_cell(std::string_view text, std::size_t column, std::span<Choice> design) const;
  Status check_gene(Design design, std::size_t gene) const;
  /// In order; `visit` may choose for the gene that it is given.
  template <class Visit>
  void for_active_genes(Design design, const Visit& visit) const {
    for (std::size_t gene = next_active(design, 0); gene < genes_.size();
         gene = next_active(design, gene + 1)) {
      visit(gene);
    }
  }

  /// is_active for designs with zeros in all inactive genes, where a look at the choice often
  /// decides.
  bool was_active(Design design, std::size_t gene) const {
    return design[gene] != 0 || is_active(design, gene);
  }

  std::string name_;
  std::string description_;
  std::vector<std::string> columns_;
  DeadPaths dead_paths_;
  std::vector<Gene> genes_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> choice_counts_;    // of each gene
  std::vector<std::uint32_t> first_columns_;  // of each slot in "one-hot"; at the end the constant
  std::vector<Count> counts_;                 // for each of those columns but the constant
  std::vector<Encoding> encodings_;
};

/// All spaces, by name.
std::span<const std::unique_ptr<const Space>> spaces();

/// One of them, or one of them with policies behind its name, in this order: "fbnet+precision",
/// "fbnet+pruning", "fbnet+precision+pruning". `not_found`, with the names of those that there are.
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
