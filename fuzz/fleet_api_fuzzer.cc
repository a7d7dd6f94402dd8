#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/server/fleet_api.h"
#include "fleetfit/store/fleet_store.h"
#include "server/http_connection.h"
#include "server/http_head.h"

// Requests to a fleet's server as they come over the line, several one after the other: whatever
// they are, there is an answer, and none of them breaks the server.
namespace {

using namespace fleetfit;

constexpr std::uint64_t kMostBody = 1 << 20;

class StillClock final : public core::Clock {
 public:
  std::chrono::nanoseconds now() const override { return std::chrono::hours(24 * 365 * 56); }
  std::chrono::system_clock::time_point date() const override {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(now()));
  }
};

const std::filesystem::path& folder() {
  static const auto scratch = core::ScratchFolder::create().value();
  return scratch.path();
}

/// Tokens "admin", "viewer" and "agent" (of the device pi4).
void add_tokens(store::FleetStore& fleet) {
  for (const auto role : {store::Role::admin, store::Role::viewer, store::Role::agent}) {
    const auto name = std::string(store::to_string(role));
    const bool is_agent = role == store::Role::agent;
    const auto id = fleet.add_token({.name = name,
                                     .role = role,
                                     .hash = core::sha256_hex(name),
                                     .device = is_agent ? "pi4" : ""});
    if (!id) std::abort();
  }
  const store::AgentRecord agent{.name = "pi4"};
  if (!fleet.save_agents({&agent, 1})) std::abort();
}

void take_body(server::ApiRequest& request, std::string_view body, bool to_file) {
  if (!to_file) {
    request.body = body;
    return;
  }
  const auto file = folder() / "incoming" / "sent";
  std::ofstream(file, std::ios::binary) << body;
  request.upload =
      server::Upload{.file = file, .sha256 = core::sha256_hex(body), .bytes = body.size()};
}

/// Answers the first request and gives what stands behind it.
std::string_view answer_one(server::FleetApi& api, std::string_view text) {
  const auto length = server::head_length(text);
  if (!length) return {};
  const auto head = server::parse_head(text.substr(0, *length));
  if (!head) return {};
  text.remove_prefix(*length);
  auto request = server::request_of(*head, "127.0.0.1");
  const auto admission = api.admit(request);
  if (head->content_length > std::min(admission.most_bytes, kMostBody) ||
      head->content_length > text.size()) {
    return {};
  }
  take_body(request, text.substr(0, head->content_length), admission.to_file);
  text.remove_prefix(head->content_length);
  const auto reply = api.answer(request);
  if (reply.status < 200 || reply.status > 599) std::abort();
  server::format_head(reply, reply.body.size(), {});
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const StillClock clock;
  auto workplace = app::open_workplace("memory:", clock);
  if (!workplace) std::abort();
  add_tokens(workplace->store->fleet());
  const auto api = server::make_fleet_api(*workplace, {.folder = folder()});
  if (!api) std::abort();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  while (!text.empty()) text = answer_one(**api, text);
  if (!(*api)->look_after()) std::abort();
  return 0;
}
