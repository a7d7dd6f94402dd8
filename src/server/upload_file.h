#pragma once

#include <openssl/evp.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/result.h"
#include "fleetfit/server/http_api.h"

namespace fleetfit::server {

/// A body on its way into a file, hashed as it comes. Leaves nothing behind unless it is finished.
class UploadFile {
 public:
  static Result<std::unique_ptr<UploadFile>> create(const std::filesystem::path& folder);
  UploadFile(const UploadFile&) = delete;
  UploadFile& operator=(const UploadFile&) = delete;
  ~UploadFile();

  Status write(std::string_view bytes);
  /// The file is on the disk then, and its new owner's.
  Result<Upload> finish();
  std::uint64_t bytes() const { return upload_.bytes; }

 private:
  UploadFile() = default;

  struct FreeDigest {
    void operator()(EVP_MD_CTX* digest) const { EVP_MD_CTX_free(digest); }
  };
  core::FileDescriptor file_;
  std::unique_ptr<EVP_MD_CTX, FreeDigest> digest_;
  Upload upload_;
  bool finished_ = false;
};

}  // namespace fleetfit::server
