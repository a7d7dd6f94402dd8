#pragma once

#include <string>

#include "fleetfit/store/fleet_store.h"
#include "tests/store/example_records.h"

namespace fleetfit::store {

/// A text that could be a SHA-256, of one digit.
inline std::string example_hash(char digit) { return std::string(64, digit); }

/// Every field has a value, each another one; as are those of the other examples.
inline TokenRecord example_token(char digit = 'a') {
  return {.name = std::string("token ") + digit,
          .role = Role::agent,
          .hash = example_hash(digit),
          .device = "pi4",
          .created = date(1),
          .expires = date(1000),
          .devices = 12};
}

inline AgentRecord example_agent(const std::string& name = "pi4") {
  return {.name = name,
          .version = "0.9",
          .hardware = "Raspberry Pi 4, 4 x Cortex-A72",
          .probe = R"({"mhz":1500})",
          .serving = R"({"bundle":"b"})",
          .created = date(2),
          .last_seen = date(3),
          .token = 3};
}

inline JobRecord wanted_job(const std::string& agent = "pi4") {
  return {.agent = agent,
          .kind = "measure",
          .request = R"({"model":"m"})",
          .limits = R"({"seconds":5})",
          .most_attempts = 2,
          .created = date(4)};
}

inline EventRecord example_event(std::int64_t sequence, const std::string& kind = "switch") {
  return {.agent = "pi4",
          .sequence = sequence,
          .job = 7,
          .kind = kind,
          .body = R"({"to":3})",
          .time = date(10 * sequence),
          .device_time = date(10 * sequence - 5)};
}

inline FileRecord example_file(char digit = 'a') {
  return {.hash = example_hash(digit),
          .name = "net.onnx",
          .kind = "onnx",
          .bytes = 5'000'000'000,
          .created = date(6)};
}

inline AuditRecord example_entry(const std::string& action = "job.cancel") {
  return {.token = 3, .name = "me", .action = action, .detail = "job 7", .time = date(7)};
}

}  // namespace fleetfit::store
