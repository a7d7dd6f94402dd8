#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"
#include "fleetfit/store/fleet_store.h"

/// Tokens, by which people, programs and agents say to a server who they are. Of a token only the
/// hash is kept.
namespace fleetfit::app {

struct TokenRequest {
  std::string name = {};  ///< for people
  store::Role role = store::Role::viewer;
  std::string device = {};  ///< the only one that an agent may be; empty: any
  std::optional<store::Time> expires = {};
  /// How many devices an agent may register by it, if it is bound to none.
  std::optional<std::int64_t> devices = {};
};

struct CreatedToken {
  std::string token = {};  ///< the secret: 256 random bits in text, kept nowhere
  store::TokenRecord record = {};
};

/// Adds a new token. Fails with `invalid_input` if the device has no name of a device, or the role
/// none, or a number of devices is said of a token that registers none or one, or it would have
/// expired already.
Result<CreatedToken> create_token(store::FleetStore& fleet, const TokenRequest& request,
                                  store::Time now);

/// The token of that secret. Whether it is unknown, has expired or was revoked, the failure is the
/// same `not_found`. The secret is looked up by its hash, so that the time that it takes says
/// nothing of it either.
Result<store::TokenRecord> find_token(store::FleetStore& fleet, std::string_view secret,
                                      store::Time now);

/// Whether it has neither expired nor was revoked.
bool is_valid(const store::TokenRecord& token, store::Time now);

/// "12h", "30d" or "2w". Fails with `invalid_input` on everything else, and above 100 years.
Result<std::chrono::milliseconds> parse_lifetime(std::string_view text);

/// What is asked for on a command line; noted in the audit.
struct NewToken {
  std::string name = {};
  std::string role = "viewer";
  std::string device = {};
  std::string lifetime = {};          ///< as `parse_lifetime` takes it; empty: for ever
  std::filesystem::path output = {};  ///< a new file for the secret, for its owner alone
  std::optional<std::int64_t> devices = {};
};
/// Fails with `invalid_input` if the file exists; then there is no token either.
Result<CreatedToken> create_token(const Workplace& workplace, const NewToken& wanted);

struct TokenList {
  std::vector<store::TokenRecord> tokens = {};  ///< by id
  store::Time now = {};
};
Result<TokenList> list_tokens(const Workplace& workplace);

/// Fails with `not_found` if there is none, or it was revoked before. Noted in the audit.
Status revoke_token(const Workplace& workplace, std::int64_t id);

/// How many devices may be registered by it; nothing if it is bound to one, or is of no agent.
std::optional<std::int64_t> most_devices(const store::TokenRecord& token);

/// "valid", "expired" or "revoked".
std::string_view state_of(const store::TokenRecord& token, store::Time now);

/// Never holds the secret or its hash.
nlohmann::ordered_json to_json(const store::TokenRecord& token, store::Time now);
nlohmann::ordered_json to_json(const TokenList& list);

}  // namespace fleetfit::app
