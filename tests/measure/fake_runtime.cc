// A runtime for tests that behaves until it is asked for one op, and then does not.
//   fake_runtime                          behaves
//   fake_runtime OP hang                  never answers
//   fake_runtime OP slow                  answers after a while
//   fake_runtime OP exit:3                says something on stderr and exits
//   fake_runtime OP signal:9              is killed
//   fake_runtime OP close                 closes its output and lives on
//   fake_runtime OP endless               writes a line that never ends
//   fake_runtime OP say:TEXT              answers with TEXT, in which ID stands for the request's
//   id fake_runtime OP again:FILE            exits the first time, when it creates FILE, and
//   behaves then fake_runtime OP rename:FILE           behaves the first time, then it is another
//   runtime
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "fleetfit/measure/exec_runtime.h"
#include "tests/measure/echo_runtime.h"

namespace {

using nlohmann::json;

void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

[[noreturn]] void leave(int status) {
  std::cerr << "the battery\nis empty\n" << std::flush;
  std::_Exit(status);
}

void write_endless_line() {
  const std::string piece(1 << 16, 'x');
  while (std::cout << piece << std::flush) {
  }
}

void say(std::string text, const std::string& id) {
  for (auto at = text.find("ID"); at != std::string::npos; at = text.find("ID", at + id.size())) {
    text.replace(at, 2, id);
  }
  std::cout << text << '\n' << std::flush;
}

bool create(const std::string& file) {
  if (std::ifstream(file)) return false;
  std::ofstream(file) << "here";
  return true;
}

/// Whether the request has been dealt with.
bool misbehave(const std::string& how, const json& request) {
  const auto colon = how.find(':');
  const auto kind = how.substr(0, colon);
  const auto detail = colon == std::string::npos ? "" : how.substr(colon + 1);
  const auto id = request.at("id").dump();
  if (kind == "hang") hang();
  if (kind == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (kind == "exit") leave(std::atoi(detail.c_str()));
  if (kind == "signal") std::raise(std::atoi(detail.c_str()));
  if (kind == "endless") write_endless_line();
  if (kind == "again" && create(detail)) leave(1);
  if (kind == "close") {
    ::close(STDOUT_FILENO);
    hang();
  }
  if (kind == "rename" && !create(detail)) {
    say(R"({"id":ID,"ok":true,"protocol":1,"name":"echo","version":"1.3","build":"test"})", id);
    return true;
  }
  if (kind != "say") return false;
  say(detail, id);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  fleetfit::measure::EchoRuntime runtime;
  if (argc < 3) return fleetfit::measure::serve_runtime(runtime, std::cin, std::cout) ? 0 : 1;
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = json::parse(line);
    if (request.at("op") == argv[1] && misbehave(argv[2], request)) continue;
    std::cout << fleetfit::measure::answer_request(runtime, line) << '\n' << std::flush;
  }
  return 0;
}
