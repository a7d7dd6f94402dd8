#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/protocol.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/quantity.h"
#include "fleetfit/space/source.h"
#include "fleetfit/space/space.h"

/// Where a search takes its numbers from, as users write it:
///   table:FILE.csv#COLUMN     a column of a table of designs
///   predictor:FILE            a predictor of whole networks or of kernels
///   adapted:FILE              a proxy that was adapted to a device
///   device:NAME               measures, and keeps what was measured in the store
///   fitted:FILE.csv#COLUMN    a predictor that is fitted to the designs of a small table
///   own:NAME                  what the caller of these functions brings along
namespace fleetfit::app {

using space::Quantity;

/// How `fitted:` learns.
enum class FitMethod : std::uint8_t {
  automatic,  ///< linear or boosted trees, what ranks unseen designs better
  mlp,        ///< four dense layers, by fleetfit-train
};

/// "auto" or "mlp"; else `invalid_input`.
Result<FitMethod> fit_method_from(std::string_view name);

struct SourceOptions {
  measure::Protocol protocol = {};  ///< of devices
  FitMethod fit = FitMethod::automatic;
  std::map<std::string, const space::Source*, std::less<>> own = {};  ///< by name; borrowed
  std::uint64_t seed = 1;
  int threads = 1;
};

/// What a source has spent so far.
struct Spent {
  std::size_t measurements = 0;  ///< made now; those that the store knew cost nothing
  double machine_s = 0;
};

struct OpenedSource {
  std::unique_ptr<const space::Source> source = {};
  std::string text = {};   ///< as the user has it
  std::string about = {};  ///< for people
  bool is_measured = false;
  /// Of a source that knows but some designs of the space: those.
  std::optional<space::Population> designs = std::nullopt;
  /// Of a fitted predictor: Spearman's, of designs that it did not see.
  std::optional<double> rank_correlation = std::nullopt;
  std::function<Spent()> spent = {};  ///< empty if asking costs nothing
};

/// What sources are opened with. Borrows everything; opened sources must not outlive it.
struct SourcePlace {
  const space::Space& space;
  Workplace& workplace;
  core::Progress& progress;
  std::stop_token stop = {};
};

/// Whether the source measures, and so needs a store to keep its measurements in.
bool measures(std::string_view source);

/// Fails with `invalid_input`, naming the source, if its text is none or its file does not fit the
/// space; and as reading the file or finding the device does.
Result<OpenedSource> open_source(const SourcePlace& place, std::string_view text, Quantity quantity,
                                 const SourceOptions& options);

}  // namespace fleetfit::app
