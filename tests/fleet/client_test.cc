#include "fleetfit/fleet/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::fleet {
namespace {

using core::TemporaryFolder;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kToken = "s3cret-token";

/// A server that answers as the test says, on a port of its own.
class Server {
 public:
  explicit Server(std::unique_ptr<httplib::Server> http = std::make_unique<httplib::Server>())
      : http_(std::move(http)) {
    port_ = http_->bind_to_any_port("127.0.0.1");
  }
  void start() {
    thread_ = std::jthread([this] { http_->listen_after_bind(); });
    while (!http_->is_running()) std::this_thread::yield();
  }
  ~Server() { http_->stop(); }

  httplib::Server& http() { return *http_; }
  int port() const { return port_; }

 private:
  std::unique_ptr<httplib::Server> http_;
  int port_ = 0;
  std::jthread thread_;
};

std::unique_ptr<Client> client_of(const Server& server, ClientOptions options = {}) {
  if (options.server.empty()) options.server = "http://127.0.0.1:" + std::to_string(server.port());
  options.token = kToken;
  options.timeout_s = 5;
  return make_client(options).value();
}

TEST(Client, CallsThePathsOfTheApiWithItsToken) {
  Server server;
  std::string seen;
  server.http().Post("/api/v1/agent/claim", [&](const auto& request, auto& response) {
    seen = request.get_header_value("Authorization") + " " + request.get_param_value("device") +
           " " + request.body;
    response.set_content(R"({"jobs":[]})", "application/json");
  });
  server.start();
  const auto reply =
      client_of(server, {.device = "pi4"})->post("/agent/claim", {{"most", 1}}).value();
  EXPECT_EQ(reply, (json{{"jobs", json::array()}}));
  EXPECT_EQ(seen, R"(Bearer s3cret-token pi4 {"most":1})");
}

TEST(Client, GivesTheServersOwnWordsAndWhenToTryAgain) {
  Server server;
  server.http().Get("/api/v1/jobs", [](const auto&, auto& response) {
    response.status = 429;
    response.set_header("Retry-After", "7");
    response.set_content(R"({"error":{"code":"busy","message":"too many calls"}})",
                         "application/json");
  });
  server.start();
  const auto reply = client_of(server)->get("/jobs");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().status, 429);
  EXPECT_EQ(reply.error().message, "too many calls");
  EXPECT_EQ(reply.error().retry_after_s, 7);
  EXPECT_TRUE(reply.error().passing());
  const auto missing = client_of(server)->remove("/jobs/7");
  EXPECT_EQ(missing.error().status, 404);
  EXPECT_FALSE(missing.error().passing());
}

TEST(Client, AServerThatIsAwayOrSpeaksNonsenseIsWorthTryingAgain) {
  Server server;
  server.http().Get("/api/v1/summary", [](const auto&, auto& response) {
    response.set_content("<html>", "text/html");
  });
  server.start();
  const auto nonsense = client_of(server)->get("/summary");
  EXPECT_THAT(nonsense.error().message, HasSubstr("answer:1:1"));
  EXPECT_TRUE(nonsense.error().passing());
  const auto away = client_of(server, {.server = "http://127.0.0.1:1"})->get("/summary");
  EXPECT_EQ(away.error().status, 0);
  EXPECT_THAT(away.error().message, HasSubstr("there is no connection"));
  EXPECT_THAT(away.error().message, Not(HasSubstr(kToken)));
}

TEST(Client, DownloadsFilesAndChecksTheirHashes) {
  const TemporaryFolder folder;
  const std::string content(300'000, 'x');
  Server server;
  server.http().Get("/api/v1/files/.*", [&](const auto&, auto& response) {
    response.set_content(content, "application/octet-stream");
  });
  server.start();
  const auto client = client_of(server);
  const auto file = folder.path() / "f";
  ASSERT_TRUE(client->download(core::sha256_hex(content), file));
  EXPECT_EQ(core::read_file(file).value(), content);

  const auto other = folder.path() / "g";
  const auto wrong = client->download(std::string(64, '0'), other);
  EXPECT_THAT(wrong.error().message, HasSubstr("has the hash " + core::sha256_hex(content)));
  EXPECT_FALSE(wrong.error().passing());
  EXPECT_FALSE(std::filesystem::exists(other));

  const auto small = client_of(server, {.max_download_bytes = 1000});
  EXPECT_THAT(small->download(core::sha256_hex(content), other).error().message,
              HasSubstr("more than 1000 bytes"));
  EXPECT_FALSE(std::filesystem::exists(other));
  EXPECT_THAT(client->download("../secret", other).error().message, HasSubstr("SHA-256"));
}

TEST(Client, ARefusedDownloadLeavesNoFile) {
  const TemporaryFolder folder;
  Server server;
  server.start();
  const auto file = folder.path() / "f";
  const auto refused = client_of(server)->download(std::string(64, 'a'), file);
  EXPECT_EQ(refused.error().status, 404);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Client, UploadsFiles) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "f";
  const std::string content(200'000, 'y');
  ASSERT_TRUE(core::write_file(file, content));
  Server server;
  server.http().Post("/api/v1/files", [&](const auto& request, auto& response) {
    response.set_content(
        json{{"hash", core::sha256_hex(request.body)}, {"name", request.get_param_value("name")}}
            .dump(),
        "application/json");
  });
  server.start();
  const auto reply = client_of(server)->upload("/files?name=m.onnx", file).value();
  EXPECT_EQ(reply["hash"], core::sha256_hex(content));
  EXPECT_EQ(reply["name"], "m.onnx");
}

TEST(Client, TokensGoToOtherMachinesOverTlsAlone) {
  const auto error = [](const ClientOptions& options) {
    const auto client = make_client(options);
    return client ? std::string() : client.error().message;
  };
  EXPECT_THAT(error({.server = "http://fleet.example:80", .token = kToken}),
              HasSubstr("over https alone"));
  EXPECT_THAT(error({.server = "http://127.0.0.1.example:80", .token = kToken}),
              HasSubstr("over https alone"));
  for (const auto* bad : {"fleet.example", "ftp://a", "https://", "https://a:0", "https://a:99999",
                          "https://a/b", "https://user@a", "https://a\r\nX: y"})
    EXPECT_THAT(error({.server = bad, .token = kToken}), HasSubstr("server ")) << bad;
  for (const auto* bad : {"", "a b", "a\nb"})
    EXPECT_THAT(error({.server = "https://a", .token = bad}), HasSubstr("token"));
  EXPECT_EQ(error({.server = "https://fleet.example:8443/", .token = kToken}), "");
  EXPECT_EQ(error({.server = "http://[::1]:8080", .token = kToken}), "");
}

/// A key and a certificate for 127.0.0.1 that is signed by itself.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key) {
  EVP_PKEY* pair = ::EVP_EC_gen("P-256");
  X509* x509 = ::X509_new();
  ::X509_set_version(x509, 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(x509), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(x509), -60);
  ::X509_gmtime_adj(::X509_getm_notAfter(x509), 3600);
  ::X509_set_pubkey(x509, pair);
  X509_NAME* name = ::X509_get_subject_name(x509);
  ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("127.0.0.1"), -1, -1, 0);
  ::X509_set_issuer_name(x509, name);
  X509_EXTENSION* names =
      ::X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  ::X509_add_ext(x509, names, -1);
  ::X509_EXTENSION_free(names);
  ::X509_sign(x509, pair, ::EVP_sha256());
  std::FILE* file = std::fopen(certificate.c_str(), "w");
  ::PEM_write_X509(file, x509);
  std::fclose(file);
  file = std::fopen(key.c_str(), "w");
  ::PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  ::X509_free(x509);
  ::EVP_PKEY_free(pair);
}

TEST(Client, TrustsTheCertificateThatItIsToldOfAndNoOther) {
  const TemporaryFolder folder;
  const auto certificate = folder.path() / "cert.pem";
  const auto key = folder.path() / "key.pem";
  const auto stranger = folder.path() / "stranger.pem";
  write_certificate(certificate, key);
  write_certificate(stranger, folder.path() / "other.pem");
  Server server(std::make_unique<httplib::SSLServer>(certificate.c_str(), key.c_str()));
  server.http().Get("/api/v1/health", [](const auto&, auto& response) {
    response.set_content(R"({"status":"ok"})", "application/json");
  });
  server.start();
  const auto url = "https://127.0.0.1:" + std::to_string(server.port());

  const auto trusted = client_of(server, {.server = url, .authority = certificate});
  const auto reply = trusted->get("/health");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ((*reply)["status"], "ok");

  for (const auto& authority : {std::filesystem::path(), stranger}) {
    const auto refused = client_of(server, {.server = url, .authority = authority})->get("/health");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, 0);
    EXPECT_THAT(refused.error().message, HasSubstr("not one that is trusted"));
  }
  EXPECT_THAT(
      make_client({.server = url, .token = kToken, .authority = "/nowhere.pem"}).error().message,
      HasSubstr("/nowhere.pem"));
}

}  // namespace
}  // namespace fleetfit::fleet
