#include "server/upload_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace fleetfit::server {
namespace {

tl::unexpected<Error> problem(const std::filesystem::path& file, std::string_view what) {
  return fail(ErrorCode::io,
              fmt::format("{}: {}: {}", file.string(), what, core::system_message(errno)));
}

}  // namespace

Result<std::unique_ptr<UploadFile>> UploadFile::create(const std::filesystem::path& folder) {
  std::unique_ptr<UploadFile> upload(new UploadFile());
  auto name = (folder / "XXXXXX").string();
  upload->file_ = core::FileDescriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (!upload->file_.is_open()) return problem(folder, "a file cannot be made there");
  upload->upload_.file = name;
  upload->digest_.reset(EVP_MD_CTX_new());
  if (!upload->digest_ || EVP_DigestInit_ex(upload->digest_.get(), EVP_sha256(), nullptr) != 1) {
    return fail(ErrorCode::internal, "OpenSSL has no SHA-256");
  }
  return upload;
}

UploadFile::~UploadFile() {
  if (finished_ || upload_.file.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(upload_.file, ignored);
}

Status UploadFile::write(std::string_view bytes) {
  if (EVP_DigestUpdate(digest_.get(), bytes.data(), bytes.size()) != 1)
    return fail(ErrorCode::internal, "OpenSSL cannot hash");
  upload_.bytes += bytes.size();
  if (!core::write_all(file_, bytes)) return problem(upload_.file, "cannot be written");
  return {};
}

Result<Upload> UploadFile::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (EVP_DigestFinal_ex(digest_.get(), hash.data(), &size) != 1)
    return fail(ErrorCode::internal, "OpenSSL cannot hash");
  for (unsigned i = 0; i < size; ++i) upload_.sha256 += fmt::format("{:02x}", hash[i]);
  if (::fsync(file_.get()) != 0) return problem(upload_.file, "cannot be written");
  file_.close();
  finished_ = true;
  return upload_;
}

}  // namespace fleetfit::server
