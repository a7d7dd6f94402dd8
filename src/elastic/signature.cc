#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

#include "elastic/bundle_format.h"
#include "fleetfit/core/file.h"

namespace fleetfit::elastic {
namespace {

constexpr std::uint64_t kMostKeyBytes = 65536;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Context = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;

// Without this, OpenSSL asks for a passphrase on the terminal.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

/// `read` is OpenSSL's function for the wanted half of a key.
template <class Read>
Result<Key> read_key(const std::filesystem::path& file, std::string_view half, Read read) {
  FLEETFIT_ASSIGN(const auto text,
                  core::read_file(file, {.max_bytes = kMostKeyBytes,
                                         .special_files = core::SpecialFiles::allow}));
  const Bio memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  Key key(read(memory.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (!key || EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: it holds no {} Ed25519 key in PEM without a passphrase",
                            file.string(), half));
  }
  return key;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Result<Signature> sign(std::string_view message, const std::filesystem::path& private_key) {
  FLEETFIT_ASSIGN(const auto key, read_key(private_key, "private", PEM_read_bio_PrivateKey));
  const Context context(EVP_MD_CTX_new());
  Signature signature{};
  std::size_t size = signature.size();
  const bool done =
      context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), signature.data(), &size, bytes_of(message), message.size()) ==
          1;
  ERR_clear_error();
  if (!done || size != signature.size())
    return fail(ErrorCode::internal, fmt::format("{}: OpenSSL cannot sign", private_key.string()));
  return signature;
}

Status check_signature(std::string_view message, const Signature& signature,
                       const std::filesystem::path& public_key) {
  FLEETFIT_ASSIGN(const auto key, read_key(public_key, "public", PEM_read_bio_PUBKEY));
  const Context context(EVP_MD_CTX_new());
  const bool valid =
      context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), signature.data(), signature.size(), bytes_of(message),
                       message.size()) == 1;
  ERR_clear_error();
  if (!valid) {
    return fail(ErrorCode::invalid_input,
                fmt::format("its signature is not by the key {}", public_key.string()));
  }
  return {};
}

}  // namespace fleetfit::elastic
