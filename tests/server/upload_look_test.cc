#include "server/upload_look.h"

#include <gmock/gmock.h>

#include "fleetfit/core/file.h"
#include "fleetfit/server/upload_kind.h"
#include "tests/sanitized.h"
#include "tests/server/fleet_api_fixture.h"

/// Files that make the program which looks into them fail; scripts stand for that program.
namespace fleetfit::server {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class UploadLooks : public FleetApiTest {
 protected:
  fs::path program(const std::string& script) {
    const auto file = scratch_.path() / "program";
    EXPECT_TRUE(core::write_file(file, "#!/bin/sh\n" + script + "\n"));
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
  ApiReply send(const std::string& content, const std::string& name) {
    const auto file = scratch_.path() / "files" / "incoming" / "x";
    EXPECT_TRUE(core::write_file(file, content));
    return api().answer(
        {.method = "POST",
         .path = "/api/v1/files",
         .query = "name=" + name,
         .authorization = "Bearer " + admin_,
         .peer = "10.0.0.1",
         .upload =
             Upload{.file = file, .sha256 = core::sha256_hex(content), .bytes = content.size()}});
  }
  bool nothing_is_kept() {
    return fleet().list_files(10)->empty() && fs::is_empty(scratch_.path() / "files" / "incoming");
  }
  void look_by(const std::string& script, double seconds = 20) {
    start({.look = {.program = program(script), .seconds = seconds, .memory_bytes = 100 << 20}});
  }
};

TEST_F(UploadLooks, ItIsSaidByTheProgramWhatAFileIs) {
  look_by(R"([ "$1 ${3#--name=}" = "upload-kind a.onnx" ] && echo '{"kind":"onnx"}')");
  const auto reply = send("anything", "a.onnx");
  ASSERT_EQ(reply.status, 201) << reply.body;
  EXPECT_EQ(json(reply).at("kind"), "onnx");
  const auto hash = core::sha256_hex("anything");
  EXPECT_EQ(core::read_file(scratch_.path() / "files" / hash.substr(0, 2) / hash), "anything");
}

TEST_F(UploadLooks, AFileThatIsRefusedIsRefusedInTheSameWords) {
  look_by(R"(echo "{\"error\":\"${2#--file=}: no model\",\"code\":\"unsupported\"}")");
  const auto reply = send("anything", "a.onnx");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(problem(reply), "a.onnx: no model");
  EXPECT_TRUE(nothing_is_kept());
}

TEST_F(UploadLooks, AFileThatCrashesTheProgramIsRefused) {
  look_by("kill -SEGV $$");
  const auto reply = send("anything", "a.onnx");
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(problem(reply), HasSubstr("a.onnx: it cannot be looked into: signal 11"));
  EXPECT_TRUE(nothing_is_kept());
}

TEST_F(UploadLooks, AFileThatTakesTooLongIsRefused) {
  look_by("sleep 600", 0.2);
  const auto reply = send("anything", "a.ffb");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(problem(reply), "a.ffb: it cannot be looked into: that takes longer than 0.2 s");
  EXPECT_TRUE(nothing_is_kept());
}

TEST_F(UploadLooks, AFileThatEatsMemoryIsRefused) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve more memory than any limit";
  // Without a limit it takes 300 MB, and says that all is well.
  look_by(R"(x=$(head -c 300000000 /dev/zero | tr '\0' x) && echo '{"kind":"onnx"}')");
  const auto reply = send("anything", "a.onnx");
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(problem(reply), HasSubstr("it cannot be looked into"));
  EXPECT_TRUE(nothing_is_kept());
}

TEST_F(UploadLooks, AnAnswerThatIsNoneRefusesTheFile) {
  for (const auto* script : {"true", "echo nonsense", "echo '{}'", "exit 3"}) {
    look_by(script);
    EXPECT_EQ(send("anything", "a.onnx").status, 400) << script;
    EXPECT_TRUE(nothing_is_kept()) << script;
  }
}

TEST_F(UploadLooks, TheServerSaysThatItCannotLook) {
  start({.look = {.program = scratch_.path() / "missing"}});
  EXPECT_EQ(send("anything", "a.onnx").status, 500);
  EXPECT_THAT(log_, HasSubstr("missing"));
  EXPECT_TRUE(nothing_is_kept());
}

TEST_F(UploadLooks, TheAnswerOfTheVerbSaysKindOrError) {
  const auto file = scratch_.path() / "pool";
  ASSERT_TRUE(core::write_file(file, "{}"));
  EXPECT_EQ(describe_upload(file, "x.json"), "{\"kind\":\"pool\"}\n");
  EXPECT_EQ(describe_upload(file, "x.bin"), "{\"kind\":\"data\"}\n");
  const auto answer = Json::parse(describe_upload(file, "x.pem"));
  EXPECT_EQ(answer.at("code"), "invalid_input");
  EXPECT_EQ(answer.at("error"), "expected a public key in PEM");
}

}  // namespace
}  // namespace fleetfit::server
