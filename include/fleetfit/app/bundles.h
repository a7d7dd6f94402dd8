#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/bundle.h"
#include "fleetfit/elastic/expand.h"

/// Use cases on bundles: elastic models as files.
namespace fleetfit::app {

struct BranchSummary {
  std::string code = {};  ///< "o", "s1", "m2", as in the texts of subnets
  elastic::BranchKind kind = elastic::BranchKind::original;
  std::size_t span = 1;
  double share = 1;
  std::int64_t macs = 0;
  std::int64_t params = 0;
  std::int64_t weight_bytes = 0;
};
core::Fields fields_of(const BranchSummary*);

struct BlockSummary {
  std::string name = {};
  std::vector<std::int64_t> input = {};
  std::vector<std::int64_t> output = {};
  std::vector<BranchSummary> branches = {};
};
core::Fields fields_of(const BlockSummary*);

struct ElasticModelSummary {
  std::string name = {};
  std::int64_t macs = 0;  ///< of the original
  std::int64_t params = 0;
  std::vector<BlockSummary> blocks = {};
};
core::Fields fields_of(const ElasticModelSummary*);

struct BundleSummary {
  std::string file = {};
  elastic::BundleInfo info = {};
  elastic::BundleCheck check = {};
  std::string manifest_sha256 = {};
  std::string subnets = {};  ///< how many there are, exactly, in decimal
  double subnets_approximate = 0;
  std::string original = {};  ///< text of the subnet that is the first model
  std::vector<ElasticModelSummary> models = {};
};
core::Fields fields_of(const BundleSummary*);

/// What is in a bundle, after all checks of `elastic::read_bundle`.
Result<BundleSummary> show_bundle(const std::filesystem::path& file);

struct VerifiedBundle {
  std::string file = {};
  elastic::BundleCheck check = {};
};
core::Fields fields_of(const VerifiedBundle*);

/// With a public key, a bundle that is not signed by it is refused.
Result<VerifiedBundle> verify_bundle(const std::filesystem::path& file,
                                     const std::optional<std::filesystem::path>& public_key);

/// Signs the file in its place and gives what was signed.
Result<VerifiedBundle> sign_bundle(const std::filesystem::path& file,
                                   const std::filesystem::path& private_key);

struct WrittenSubnet {
  std::string subnet = {};
  std::string file = {};
  std::uintmax_t bytes = 0;
  std::int64_t macs = 0;
  std::int64_t params = 0;
};
core::Fields fields_of(const WrittenSubnet*);

/// Writes a subnet as ordinary ONNX, node by node as it stands in the bundle. Without a text: the
/// original (of the first model). `invalid_input` if there is no such subnet.
Result<WrittenSubnet> extract_subnet(const std::filesystem::path& bundle,
                                     const std::optional<std::string>& subnet,
                                     const std::filesystem::path& file);

struct WrittenBundle {
  std::string file = {};
  std::uintmax_t bytes = 0;
  std::size_t models = 0;
  std::size_t blocks = 0;
  std::size_t branches = 0;
  std::string subnets = {};
  double subnets_approximate = 0;
};
core::Fields fields_of(const WrittenBundle*);

/// The models of several bundles in one. Blocks that are alike are stored once. Fails with
/// `invalid_input` if they tell different classes apart. The new bundle is not signed.
Result<WrittenBundle> join_bundles(const std::vector<std::filesystem::path>& bundles,
                                   const std::filesystem::path& file);

/// A bundle whose branches have their first weights and were not trained: to look at blocks, sizes
/// and latencies before the hours of training.
Result<WrittenBundle> draft_bundle(const std::filesystem::path& model,
                                   const elastic::ExpandOptions& options, const core::Clock& clock,
                                   const std::filesystem::path& file);

}  // namespace fleetfit::app
