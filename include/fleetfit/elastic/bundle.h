#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"

namespace fleetfit::core {
struct Fields;
}

/// Supernets as one file (`.ffb`, docs/formats/bundle.md): a manifest, and a section for each
/// branch, which is an ONNX model of its own on a page boundary. Checked before use, mapped when
/// used.
namespace fleetfit::elastic {

/// A subnet whose accuracy is known.
struct AccuracySample {
  std::string subnet = {};
  double accuracy = 0;   ///< share of images, or of pixels, whose class was found
  double mac_share = 1;  ///< multiply-accumulates relative to the original
  /// Of classes of pixels: intersection over union, its mean over the classes.
  std::optional<double> mean_iou = std::nullopt;
};
core::Fields fields_of(const AccuracySample*);

struct BundleInfo {
  std::string created_by = {};  ///< "fleetfit 0.1"
  std::int64_t created = 0;     ///< milliseconds since 1970
  std::string data = {};        ///< what it was trained on
  std::vector<std::string> classes = {};
  std::vector<AccuracySample> samples = {};
  std::int64_t model_bytes = 0;  ///< size of the original's file
};
core::Fields fields_of(const BundleInfo*);

struct Bundle {
  BundleInfo info = {};
  std::string manifest_sha256 = {};  ///< when read: identifies the bundle
  std::vector<Supernet> models = {};
};

/// Writes the file whole or not at all.
Status write_bundle(const Bundle& bundle, const std::filesystem::path& file);

struct BundleReadOptions {
  std::int64_t batch = 1;  ///< extent of the first dimension of the models' inputs
  /// Ed25519 public key in PEM; if given, a bundle without a signature by it is refused.
  std::optional<std::filesystem::path> public_key = std::nullopt;
};

/// Checks magic, version, manifest, checksums of all sections and the signature, then reads. The
/// weights stay in the file and are read on demand. `invalid_input` names file and section:
/// damaged, cut short, newer than this program, not signed, signed by another key, sections that do
/// not fit together.
Result<Bundle> read_bundle(const std::filesystem::path& file,
                           const BundleReadOptions& options = {});

struct BundleSection {
  std::string name = {};  ///< "model/block 3/s1"
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string sha256 = {};
};
core::Fields fields_of(const BundleSection*);

struct BundleCheck {
  int version = 0;
  std::uint64_t bytes = 0;
  std::vector<BundleSection> sections = {};
  std::string signature = {};  ///< "none", "valid" (with a key), "not checked" (without)
};

/// All checks of `read_bundle` without keeping anything.
Result<BundleCheck> verify_bundle(const std::filesystem::path& file,
                                  const BundleReadOptions& options = {});

/// Signs the manifest, which holds the checksums of everything else. The private key is Ed25519 in
/// PEM (`openssl genpkey -algorithm ed25519`).
Status sign_bundle(const std::filesystem::path& file, const std::filesystem::path& private_key);

}  // namespace fleetfit::elastic
