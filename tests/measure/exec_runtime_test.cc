#include "fleetfit/measure/exec_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>
#include <thread>

#include "fleetfit/core/file.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::measure {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kShort = 1000ms;

class ExecRuntime : public ::testing::Test {
 protected:
  /// The fake runtime, told how to misbehave.
  static ExecRuntimeOptions fake(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), FAKE_RUNTIME);
    return {.command = std::move(arguments)};
  }

  static std::unique_ptr<Runtime> start(ExecRuntimeOptions options) {
    auto runtime = start_exec_runtime(std::move(options));
    if (!runtime) ADD_FAILURE() << runtime.error().message;
    return std::move(*runtime);
  }

  /// The error of run(2) when the fake runtime says `reply` to it.
  Error error_of_run(const std::string& reply) {
    const auto runtime = start(fake({"run", "say:" + reply}));
    EXPECT_TRUE(runtime->load(model_, {}));
    auto times = runtime->run(2, true);
    return times ? Error{ErrorCode::internal, "no error"} : times.error();
  }

  core::TemporaryFolder folder_;
  std::filesystem::path model_ = folder_.file("m.onnx", "x");
};

TEST_F(ExecRuntime, SpeaksWithAProgram) {
  const auto runtime = start(fake());
  EXPECT_EQ(runtime->info().value(), (RuntimeInfo{"echo", "1.2", "test"}));
  const auto loaded =
      runtime->load(model_, {.threads = 2, .kernels = "onednn", .known_choices = "\"ü\n"});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->choices, "2 onednn \"ü\n");

  const auto times = runtime->run(3, false).value();
  EXPECT_THAT(times.ms, ElementsAre(1, 2, 3));
  EXPECT_EQ(times.peak_memory_bytes, 4096);
  EXPECT_TRUE(times.operators.empty());

  const auto operators = runtime->run(1, true).value().operators;
  ASSERT_EQ(operators.size(), 2U);
  EXPECT_EQ(operators[0].name, "a");
  EXPECT_EQ(operators[0].type, "Conv");
  EXPECT_EQ(operators[0].kernel, "fast");
  EXPECT_EQ(operators[0].ms, 0.25);
  EXPECT_EQ(operators[1].name, "b+c");

  EXPECT_TRUE(runtime->unload());
  EXPECT_EQ(runtime->run(1, false).error().code, ErrorCode::invalid_input);
}

TEST_F(ExecRuntime, ValuesGoThereAndBack) {
  const auto runtime = start(fake());
  ASSERT_TRUE(runtime->load(model_, {}));
  const std::vector<NamedValue> inputs = {
      {"b/ä", {graph::DType::f32, {1, 2}, graph::TensorData::copy(std::vector<float>{1, -2})}},
      {"a", {graph::DType::i64, {}, graph::TensorData::copy(std::vector<std::int64_t>{7})}}};
  auto outputs = runtime->compute(inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 2U);
  std::ranges::sort(*outputs, std::greater{}, &NamedValue::name);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*outputs)[i].name, inputs[i].name);
    EXPECT_EQ((*outputs)[i].value.shape, inputs[i].value.shape);
    EXPECT_EQ((*outputs)[i].value.data, inputs[i].value.data);
  }
  EXPECT_EQ(runtime->compute(std::vector{inputs[0], inputs[0]}).error().code,
            ErrorCode::invalid_input);
}

TEST_F(ExecRuntime, AnErrorReplyIsThatErrorAndTheProcessLivesOn) {
  const auto runtime = start(fake());
  const auto error = runtime->load("/no/such.onnx", {}).error();
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.message, FAKE_RUNTIME ": there is no such model");
  EXPECT_TRUE(runtime->load(model_, {}));
  EXPECT_EQ(runtime->run(0, false).error().code, ErrorCode::invalid_input);
  EXPECT_TRUE(runtime->run(1, false));
}

TEST_F(ExecRuntime, AMissingProgramIsNotFound) {
  EXPECT_EQ(start_exec_runtime({.command = {"no-such-runtime"}}).error().code,
            ErrorCode::not_found);
  EXPECT_EQ(start_exec_runtime({.command = {}}).error().code, ErrorCode::invalid_input);
}

TEST_F(ExecRuntime, AProgramThatIsNoRuntimeIsAFailedDevice) {
  EXPECT_THAT(
      start_exec_runtime({.command = {"sh", "-c", "read line; echo hello"}}).error().message,
      HasSubstr("sh: reply to info:1:1: "));
  const auto silent = start_exec_runtime({.command = {"true"}}).error();
  EXPECT_EQ(silent.code, ErrorCode::device_failed);
  EXPECT_EQ(silent.message, "true: it ended with exit status 0 (during info)");
  const auto other =
      start_exec_runtime(
          fake({"info",
                R"(say:{"id":ID,"ok":true,"protocol":2,"name":"a","version":"b","build":"c"})"}))
          .error();
  EXPECT_THAT(other.message, HasSubstr("it speaks protocol 2, not 1"));
}

TEST_F(ExecRuntime, OneThatHangsFailsAndTheNextLoadStartsClean) {
  auto options = fake({"run", "hang"});
  options.timeouts.run = kShort;
  const auto runtime = start(options);
  ASSERT_TRUE(runtime->load(model_, {}));
  const auto error = runtime->run(1, false).error();
  EXPECT_EQ(error.code, ErrorCode::device_failed);
  EXPECT_EQ(error.message, FAKE_RUNTIME ": no answer within 1000 ms (during run)");
  EXPECT_EQ(runtime->run(1, false).error().code, ErrorCode::invalid_input);
  EXPECT_TRUE(runtime->load(model_, {}));
}

TEST_F(ExecRuntime, IsWaitedForAsLongAsTheTimeForAModelAllows) {
  const auto short_time = answers_within(1);
  EXPECT_EQ(short_time.info, 11s);
  EXPECT_EQ(short_time.load, 20s);
  EXPECT_EQ(short_time.run, 11s);
  const auto usual = answers_within(30);
  EXPECT_EQ(usual.info, 30s);
  EXPECT_EQ(usual.load, 300s);
  EXPECT_EQ(usual.run, 40s);
  const auto long_time = answers_within(3600);
  EXPECT_EQ(long_time.info, 30s);
  EXPECT_EQ(long_time.load, 3600s);
  EXPECT_EQ(long_time.run, 3600s);
}

TEST_F(ExecRuntime, OneThatHangsIsEndedWhenItIsToStop) {
  for (const std::string op : {"load", "run"}) {
    std::stop_source stop;
    auto options = fake({op, "hang"});
    options.stop = stop.get_token();
    const auto runtime = start(options);
    const std::jthread asks([&] {
      std::this_thread::sleep_for(100ms);
      stop.request_stop();
    });
    const auto loaded = runtime->load(model_, {});
    const auto error = loaded ? runtime->run(1, false).error() : loaded.error();
    EXPECT_EQ(error.code, ErrorCode::cancelled) << op << ": " << error.message;
    EXPECT_EQ(start_exec_runtime(options).error().code, ErrorCode::cancelled);
  }
}

TEST_F(ExecRuntime, OneThatIsSlowButInTimeIsFine) {
  const auto runtime = start(fake({"run", "slow"}));
  ASSERT_TRUE(runtime->load(model_, {}));
  EXPECT_TRUE(runtime->run(1, false));
}

TEST_F(ExecRuntime, OneThatDiesSaysHowAndItsLastWords) {
  const auto exits = start(fake({"run", "exit:3"}));
  ASSERT_TRUE(exits->load(model_, {}));
  const auto left = exits->run(1, false).error();
  EXPECT_EQ(left.code, ErrorCode::device_failed);
  EXPECT_EQ(left.message, FAKE_RUNTIME
            ": it ended with exit status 3 (during run); its stderr ends with: the battery | is "
            "empty");

  const auto killed = start(fake({"compute", "signal:9"}));
  ASSERT_TRUE(killed->load(model_, {}));
  EXPECT_THAT(killed->compute({}).error().message, HasSubstr("it ended with signal 9 (Killed)"));
}

TEST_F(ExecRuntime, OneThatDiedIsStartedAnewByLoad) {
  const auto runtime = start(fake({"run", "again:" + (folder_.path() / "died-before").string()}));
  ASSERT_TRUE(runtime->load(model_, {}));
  EXPECT_EQ(runtime->run(1, false).error().code, ErrorCode::device_failed);
  ASSERT_TRUE(runtime->load(model_, {}));
  EXPECT_TRUE(runtime->run(1, false));
}

TEST_F(ExecRuntime, OneThatDiesWhileLoadingFailsThatLoadOnly) {
  const auto runtime = start(fake({"load", "again:" + (folder_.path() / "died-before").string()}));
  EXPECT_EQ(runtime->load(model_, {}).error().code, ErrorCode::device_failed);
  EXPECT_TRUE(runtime->load(model_, {}));
}

TEST_F(ExecRuntime, AnotherRuntimeAfterARestartIsNoticed) {
  auto options = fake({"info", "rename:" + (folder_.path() / "named-before").string()});
  const auto runtime = start(options);
  int pid = 0;
  // Its death by another hand.
  ASSERT_TRUE(runtime->load(model_, {}));
  options.prepare = [&](int child) {
    pid = child;
    return Status{};
  };
  std::filesystem::remove(folder_.path() / "named-before");
  const auto second = start(options);
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(second->load(model_, {}).error().code, ErrorCode::device_failed);
  EXPECT_THAT(second->load(model_, {}).error().message,
              HasSubstr("it is another runtime now: echo 1.3 (test), before echo 1.2 (test)"));
}

TEST_F(ExecRuntime, OneThatClosesItsOutputOrNeverEndsALineIsStopped) {
  const auto closing = start(fake({"run", "close"}));
  ASSERT_TRUE(closing->load(model_, {}));
  EXPECT_THAT(closing->run(1, false).error().message, HasSubstr("it closed its output"));
  const auto endless = start(fake({"run", "endless"}));
  ASSERT_TRUE(endless->load(model_, {}));
  EXPECT_THAT(endless->run(1, false).error().message,
              HasSubstr("it wrote a line of more than 16777216 bytes"));
}

TEST_F(ExecRuntime, BabbleIsAFailedDeviceWithItsReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"12.5 ms", "reply to run:1:"},
      {"", "reply to run:"},
      {"[1]", "reply to run"},
      {R"({"ok":true,"times_ms":[1,1]})", "reply to run: the field 'id' is missing"},
      {R"({"id":999,"ok":true,"times_ms":[1,1]})", "it has id 999 instead of "},
      {R"({"id":ID,"times_ms":[1,1]})", "the field 'ok' is missing"},
      {R"({"id":ID,"ok":"yes","times_ms":[1,1]})", "reply to run: ok: "},
      {R"({"id":ID,"ok":true})", "the field 'times_ms' is missing"},
      {R"({"id":ID,"ok":true,"times_ms":2})", "reply to run: times_ms: "},
      {R"({"id":ID,"ok":true,"times_ms":[1]})", "1 times for 2 runs"},
      {R"({"id":ID,"ok":true,"times_ms":[1,1,1]})", "3 times for 2 runs"},
      {R"({"id":ID,"ok":true,"times_ms":[1,-1]})", "times_ms[1]: a time is negative"},
      {R"({"id":ID,"ok":true,"times_ms":[1,0.0]})", "times_ms[1]: a time is negative, zero"},
      {R"({"id":ID,"ok":true,"times_ms":[1,1e300]})", "times_ms[1]: 1e+300 lies beyond"},
      {R"({"id":ID,"ok":true,"times_ms":[1,90000]})",
       "2 runs are said to have taken 90001 ms, but the request for them was answered after"},
      {R"({"id":ID,"ok":true,"times_ms":[1,null]})", "times_ms[1]: "},
      {R"({"id":ID,"ok":true,"times_ms":[1,NaN]})", "reply to run:1:"},
      {R"({"id":ID,"ok":true,"times_ms":[1,1e999]})", "reply to run:1:"},
      {R"({"id":ID,"ok":true,"times_ms":[1,1],"peak_memory_bytes":-1})", "peak_memory_bytes: "},
      {R"({"id":ID,"ok":true,"times_ms":[1,1],"operators":[{"name":"a","type":"b","ms":-1}]})",
       "operators[0].ms: a time is negative"},
      {R"({"id":ID,"ok":true,"times_ms":[1,1],"operators":[{"name":"a","ms":1}]})",
       "operators[0]: the field 'type' is missing"},
      {R"({"id":ID,"ok":false})", "the field 'error' is missing"},
      {R"({"id":ID,"ok":false,"error":{"code":"odd","message":"on fire"}})", "on fire"}};
  for (const auto& [reply, reason] : cases) {
    const auto error = error_of_run(reply);
    EXPECT_EQ(error.code, ErrorCode::device_failed) << reply;
    EXPECT_THAT(error.message, HasSubstr(reason)) << reply;
  }
}

TEST_F(ExecRuntime, OutputsAreReadFromTheFolderAlone) {
  for (const std::string file : {"../x.npy", "/etc/passwd", "..", "", "no-such.npy"}) {
    const auto runtime =
        start(fake({"compute", R"(say:{"id":ID,"ok":true,"outputs":[{"name":"y","file":")" + file +
                                   R"("}]})"}));
    ASSERT_TRUE(runtime->load(model_, {}));
    EXPECT_EQ(runtime->compute({}).error().code, ErrorCode::device_failed) << file;
  }
}

TEST_F(ExecRuntime, EachProcessIsPreparedBeforeItIsAskedAnything) {
  auto options = fake({"load", "again:" + (folder_.path() / "died-before").string()});
  std::vector<int> prepared;
  options.prepare = [&](int pid) {
    prepared.push_back(pid);
    return Status{};
  };
  const auto runtime = start(options);
  EXPECT_EQ(prepared.size(), 1U);
  EXPECT_FALSE(runtime->load(model_, {}));
  EXPECT_TRUE(runtime->load(model_, {}));
  ASSERT_EQ(prepared.size(), 2U);
  EXPECT_NE(prepared[0], prepared[1]);

  options.prepare = [](int) -> Status { return fail(ErrorCode::unsupported, "no cgroups"); };
  EXPECT_EQ(start_exec_runtime(options).error(), (Error{ErrorCode::unsupported, "no cgroups"}));
}

TEST_F(ExecRuntime, TheEnvironmentIsAddedToOurs) {
  const auto error = start_exec_runtime({.command = {"sh", "-c", "echo $FLEETFIT_TEST >&2; exit 4"},
                                         .environment = {{"FLEETFIT_TEST", "handed on"}}})
                         .error();
  EXPECT_THAT(error.message, HasSubstr("its stderr ends with: handed on"));
}

}  // namespace
}  // namespace fleetfit::measure
