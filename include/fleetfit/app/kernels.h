#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fleetfit/app/models.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/result.h"

/// Use cases of kernels: which ones a framework will run for a model, and whether it does.
namespace fleetfit::app {

struct KernelsRequest {
  std::filesystem::path model = {};
  ModelOptions options = {};
  /// A rule set that comes with fleetfit ("tflite-gpu", "engine", …) or a file of one, *.json.
  std::string rules = {};
  std::string target = {};  ///< a device that the rules know, e.g. "mali-g76"; "": none
};

struct KernelSummary {
  std::string kernel;            ///< its kind
  std::vector<std::string> ops;  ///< names of the operators in it, the one that does the work first
  std::int64_t reordered_size = 0;  ///< elements that are brought into another layout for it
};

struct KernelsSummary {
  std::string rules;
  std::string target;
  std::vector<KernelSummary> kernels;
  int before_fusion = 0;  ///< operators of the file that do something in every run
  int after_fusion = 0;
};
core::Fields fields_of(const KernelsSummary*);

/// Which kernels will be run. Fails with `not_found` on rules or a target that do not exist, with
/// `invalid_input` on a rule file that is broken, and as the import of models does.
Result<KernelsSummary> list_kernels(const KernelsRequest& request);

struct VerifyKernelsRequest {
  KernelsRequest kernels = {};  ///< rules may be "": those of the device's runtime
  std::string device = {};
  int threads = 1;  ///< for preparing the model
};

/// A deduced kernel that ran otherwise, or something that ran and was not deduced.
struct KernelDifference {
  std::vector<std::string> deduced;           ///< empty: nothing was
  std::vector<std::vector<std::string>> ran;  ///< empty: nothing did
};

struct UnmatchedEntry {
  std::string name;
  std::string type;
  double ms = 0;
};

struct KernelsCheck {
  KernelsSummary deduced;
  std::string device;
  int ran = 0;    ///< kernels that the device reported
  int alike = 0;  ///< of those that were deduced
  double ms = 0;  ///< of all that ran
  double alike_ms = 0;
  std::vector<KernelDifference> differences;
  std::vector<UnmatchedEntry> unmatched;  ///< what ran and belongs to no operator
  std::string note;                       ///< what a reader should know of the model; may be ""

  bool pass() const { return differences.empty(); }
};
core::Fields fields_of(const KernelsCheck*);

/// Runs the model a few times on a device that reports its kernels and compares. A float model is
/// quantized for a device of int8, and the kernels are those of the quantized one. Fails with
/// `unsupported` if no rules are known for the device's runtime or it does not report its kernels.
Result<KernelsCheck> verify_kernels(Workplace& workplace, const VerifyKernelsRequest& request);

/// Names of the rules that come with fleetfit, for help texts.
std::vector<std::string> list_kernel_rules();

}  // namespace fleetfit::app
