#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/study/place.h"
#include "fleetfit/tune/budget.h"

/// Ask and tell: tuning for whatever evaluates trials by itself, in any language
/// (docs/studies.md).
namespace fleetfit::study {

/// A trial that the one who asked is to evaluate.
struct AskedTrial {
  std::int64_t trial = 0;
  std::string params = "{}";  ///< JSON, all groups flat
  tune::Budget budget = {};   ///< of all levels so far together
  std::int64_t level = 0;
  bool resume = false;  ///< it has been trained with a smaller budget before
};

struct Asked {
  std::vector<AskedTrial> trials = {};
  bool done = false;  ///< there is nothing more to come; otherwise, if there are none, tell first
};

/// What the one who evaluated a trial says of it.
struct ToldValues {
  std::int64_t trial = 0;
  std::optional<std::string> failed = std::nullopt;  ///< the reason; nothing else counts then
  std::optional<double> accuracy = std::nullopt;
  std::optional<double> loss = std::nullopt;
  double training_s = 0;  ///< of this level
  std::optional<double> training_j = std::nullopt;
  std::map<std::string, double> other = {};
  std::string model = {};  ///< its network; inference is tuned if that was not done yet
};

/// Reads {"accuracy": 0.9, "loss": …, "time_s": …, "energy_j": …, "model": "file.onnx", any other
/// numbers} or {"failed": "reason"}. Fails with `invalid_input`, naming the field, on what is no
/// finite number.
Result<ToldValues> told_values_from_json(std::int64_t trial, const core::JsonView& json);

/// Reads {"trial": 3, "values": {…}}.
Result<ToldValues> told_line_from_json(const core::JsonView& json);

struct Told {
  std::int64_t trial = 0;
  std::string status = {};          ///< waiting: it may go on with a bigger budget
  std::vector<double> values = {};  ///< of the objective, as the user counts; empty if not known
  bool keeps_limits = true;
};

struct DialogueOptions {
  std::string worker = "ask";
  /// A trial without an answer by then is given to another one who asks; nothing: never.
  std::optional<double> lease_s = std::nullopt;
};

/// A conversation with one study. Keeps its tuner from one question to the next, so that their cost
/// does not grow with the number of trials. Several at once, also of other processes, share the
/// study. Not safe to use from many threads.
class StudyDialogue {
 public:
  static Result<StudyDialogue> open(const StudyPlace& place, std::string_view study,
                                    const DialogueOptions& options);
  StudyDialogue(StudyDialogue&&) noexcept;
  ~StudyDialogue();

  /// Up to `count` trials. Fails with `io` if another tuner keeps the study for itself.
  Result<Asked> ask(std::size_t count);

  /// All or none are checked before anything is written. Fails with `invalid_input` on a trial that
  /// nobody was asked to evaluate, and if a number is missing that the objective needs.
  Result<std::vector<Told>> tell(std::span<const ToldValues> values);

  /// Decides what can be decided without new trials: which ones are finished, which go on. Then
  /// lets others decide.
  Status settle();

  /// Others need not wait until this one is forgotten.
  Status let_others_decide();

 private:
  struct State;
  explicit StudyDialogue(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Answers lines of JSON until the input ends:
///   {"ask": 2}                                        -> {"trials": […], "done": false}
///   {"tell": {"trial": 3, "values": {"accuracy": 0.9}}} or a list of them -> {"told": […]}
/// What is wrong with a line is its answer, {"error": "…"}.
Status serve_study(const StudyPlace& place, std::string_view study, const DialogueOptions& options,
                   std::istream& in, std::ostream& out);

/// Reads lines {"trial": 3, "values": {…}}.
Result<std::vector<ToldValues>> read_told_lines(std::istream& in);

nlohmann::ordered_json to_json(const Asked& asked);
nlohmann::ordered_json to_json(const std::vector<Told>& told);

}  // namespace fleetfit::study
