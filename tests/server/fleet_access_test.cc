#include "tests/server/fleet_api_fixture.h"

namespace fleetfit::server {
namespace {

using FleetAccess = FleetApiTest;

/// The path of a route with something in place of {…}.
std::string example_path(std::string_view pattern) {
  std::string path(pattern);
  for (auto at = path.find('{'); at != std::string::npos; at = path.find('{'))
    path.replace(at, path.find('}') - at + 1, "7");
  return path;
}

TEST_F(FleetAccess, OnlyHealthAndSignInAnswerWithoutAToken) {
  start({.of_address = {.burst = 1000, .per_second = 1}});
  for (const auto& route : describe_routes()) {
    const auto path = example_path(route.pattern);
    const auto reply = ask("", std::string(route.method), path, {{"x", 1}});
    const bool open = path == "/health" || (path == "/session" && route.method == "POST");
    EXPECT_EQ(reply.status == 401, !open) << route.method << " " << path << " " << reply.status;
    EXPECT_EQ(ask("wrong", std::string(route.method), path, {{"x", 1}}).status == 401, !open);
  }
}

TEST_F(FleetAccess, EveryRouteRefusesTheRolesThatItsRowDoesNotName) {
  const auto agent = add_device("pi4");
  for (const auto& route : describe_routes()) {
    if (route.roles.empty()) continue;
    for (const auto& [role, token] :
         {std::pair{"admin", admin_}, std::pair{"viewer", viewer_}, std::pair{"agent", agent}}) {
      if (route.method == "DELETE" && route.pattern == "/session") continue;
      const auto reply = ask(token, std::string(route.method), example_path(route.pattern),
                             route.method == "POST" ? Json{{"x", 1}} : Json());
      const bool may = route.roles.find(role) != std::string_view::npos;
      EXPECT_EQ(reply.status == 403, !may) << role << " " << route.method << " " << route.pattern;
    }
  }
}

TEST_F(FleetAccess, RevokedAndExpiredTokensAreNone) {
  const auto token = add_token(store::Role::viewer, {}, now() + std::chrono::seconds(10));
  EXPECT_EQ(ask(token, "GET", "/summary").status, 200);
  wait(10);
  EXPECT_EQ(ask(token, "GET", "/summary").status, 401);

  const auto id = json(ask(admin_, "POST", "/tokens", {{"name", "a"}, {"role", "viewer"}}));
  const auto other = id.at("token").get<std::string>();
  EXPECT_EQ(ask(other, "GET", "/summary").status, 200);
  EXPECT_EQ(ask(admin_, "DELETE", "/tokens/" + id.at("id").dump()).status, 200);
  EXPECT_EQ(ask(other, "GET", "/summary").status, 401);
  EXPECT_EQ(ask(admin_, "DELETE", "/tokens/" + id.at("id").dump()).status, 404);
}

TEST_F(FleetAccess, ASecretIsSeenOnceAndNeverInListsLogsOrAudit) {
  const auto created =
      json(post("/tokens", {{"name", "rack 7"}, {"role", "agent"}, {"device", "pi4"}}));
  const auto secret = created.at("token").get<std::string>();
  EXPECT_GE(secret.size(), 43u);
  EXPECT_EQ(created.at("device"), "pi4");
  EXPECT_EQ(get("/tokens").body.find(secret), std::string::npos);
  EXPECT_EQ(get("/audit").body.find(secret), std::string::npos);
  EXPECT_NE(get("/audit").body.find("token.create"), std::string::npos);
  EXPECT_EQ(log_.find(secret), std::string::npos);
}

TEST_F(FleetAccess, ABrowserSignsInByACookie) {
  const auto reply = ask("", "POST", "/session", {{"token", viewer_}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(json(reply).at("role"), "viewer");
  const auto cookie = header(reply, "Set-Cookie");
  EXPECT_NE(cookie.find("HttpOnly"), std::string::npos);
  EXPECT_NE(cookie.find("SameSite=Strict"), std::string::npos);
  EXPECT_EQ(cookie.find("Secure"), std::string::npos);  // not under TLS here

  ApiRequest request{.method = "GET",
                     .path = "/api/v1/session",
                     .cookie = "other=1; " + cookie.substr(0, cookie.find(';'))};
  EXPECT_EQ(api().answer(request).status, 200);
  request.method = "DELETE";
  EXPECT_EQ(api().answer(request).status, 403) << "a page of others can send the cookie as well";
  request.from_page = "1";
  EXPECT_EQ(api().answer(request).status, 200);
  request.method = "GET";
  EXPECT_EQ(api().answer(request).status, 401);
}

TEST_F(FleetAccess, ASessionEndsWithItsTokenAndAfterTwelveHours) {
  const auto sign_in = [&](const std::string& token) {
    const auto cookie = header(ask("", "POST", "/session", {{"token", token}}), "Set-Cookie");
    return ApiRequest{
        .method = "GET", .path = "/api/v1/session", .cookie = cookie.substr(0, cookie.find(';'))};
  };
  const auto lasting = sign_in(admin_);
  const auto revoked = sign_in(viewer_);
  const auto token = fleet().find_token(core::sha256_hex(viewer_)).value().value();
  ASSERT_TRUE(fleet().revoke_token(token.id, now()).value());
  EXPECT_EQ(api().answer(revoked).status, 401);
  wait(12 * 3600 - 1);
  EXPECT_EQ(api().answer(lasting).status, 200);
  wait(2);
  EXPECT_EQ(api().answer(lasting).status, 401);
}

TEST_F(FleetAccess, UnderTlsTheCookieIsSentOverTlsAlone) {
  start({.secure = true});
  const auto cookie = header(ask("", "POST", "/session", {{"token", admin_}}), "Set-Cookie");
  EXPECT_NE(cookie.find("; Secure"), std::string::npos);
  const auto headers = security_headers(true);
  EXPECT_TRUE(std::ranges::any_of(
      headers, [](const auto& h) { return h.first == "Strict-Transport-Security"; }));
}

TEST_F(FleetAccess, SignInIsSlowedDownByAddress) {
  start({.of_address = {.burst = 3, .per_second = 0.5}});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(ask("", "POST", "/session", {{"token", "guess"}}).status, 401);
  const auto refused = ask("", "POST", "/session", {{"token", "guess"}});
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(header(refused, "Retry-After"), "2");
  EXPECT_EQ(ask(admin_, "GET", "/summary").status, 200) << "who has a token is not concerned";
  wait(2);
  EXPECT_EQ(ask("", "POST", "/session", {{"token", "guess"}}).status, 401);
}

TEST_F(FleetAccess, EachTokenHasALimitOfItsOwn) {
  start({.of_token = {.burst = 5, .per_second = 1}});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(get("/summary").status, 200);
  EXPECT_EQ(get("/summary").status, 429);
  EXPECT_EQ(ask(viewer_, "GET", "/summary").status, 200);
  wait(1);
  EXPECT_EQ(get("/summary").status, 200);
  EXPECT_EQ(get("/summary").status, 429);
}

TEST_F(FleetAccess, OddPathsAndMethodsAreRefused) {
  for (const auto* path :
       {"/nothing", "/devices/", "//devices", "/devices/../tokens", "/devices/%2e%2e/tokens",
        "/devices/a%2Fb", "/devices/%", "/devices/%zz", "/devices/a%00b", "/devices/%ff",
        "/files/..%2f..%2fetc%2fpasswd", "/devices/7/pareto/x"}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }
  const auto reply = ask(admin_, "PATCH", "/devices");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(header(reply, "Allow"), "GET, POST");
  EXPECT_EQ(api().answer({.method = "GET", .path = "/api/v2/devices"}).status, 404);
}

TEST_F(FleetAccess, BadInputIsNamed) {
  EXPECT_EQ(problem(get("/jobs?limit=0")), "?limit: expected a whole number from 1 to 1000");
  EXPECT_EQ(problem(get("/jobs?state=odd")).substr(0, 7), "?state:");
  EXPECT_EQ(problem(get("/summary?x=1")), "?x: nothing can be asked for here");
  EXPECT_EQ(problem(get("/jobs?limit=1&limit=2")), "?limit: is there twice");
  EXPECT_EQ(get("/jobs?limit=%").status, 400);
  EXPECT_EQ(problem(post("/tokens", {{"name", "a"}, {"rôle", "b"}})).substr(0, 5), "body:");
  EXPECT_EQ(post("/tokens", {{"name", "a"}, {"role", "king"}}).status, 400);
  EXPECT_EQ(post("/tokens", Json::array({1})).status, 400);
  ApiRequest request{.method = "POST",
                     .path = "/api/v1/tokens",
                     .authorization = "Bearer " + admin_,
                     .content_type = "application/json",
                     .body = R"({"name":"a",)"};
  EXPECT_EQ(api().answer(request).status, 400);
  request.body = std::string(1000, '[');
  EXPECT_EQ(api().answer(request).status, 400);
  request.content_type = "text/plain";
  EXPECT_EQ(api().answer(request).status, 415);
}

TEST_F(FleetAccess, BodiesAreAdmittedByTheirHeads) {
  const auto admit = [&](const std::string& token, const char* method, const char* path) {
    return api().admit({.method = method,
                        .path = std::string("/api/v1") + path,
                        .authorization = "Bearer " + token,
                        .content_type = "application/json"});
  };
  EXPECT_EQ(admit(admin_, "POST", "/jobs").most_bytes, 1u << 20);
  const auto file = admit(admin_, "POST", "/files");
  EXPECT_TRUE(file.to_file);
  EXPECT_EQ(file.most_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(admit(add_device("pi4"), "POST", "/agent/results").most_bytes, 8u << 20);
  EXPECT_EQ(admit(viewer_, "POST", "/files").refused.value().status, 403);
  EXPECT_EQ(admit("nobody", "POST", "/files").refused.value().status, 401);
  EXPECT_EQ(admit(admin_, "GET", "/jobs").most_bytes, 0u);
}

TEST_F(FleetAccess, WhatChangesSomethingIsWrittenDown) {
  post("/devices", {{"name", "pi4"}});
  const auto job =
      json(post("/jobs", {{"device", "pi4"}, {"kind", "probe"}, {"request", Json::object()}}));
  ask(admin_, "DELETE", "/jobs/" + job.at("id").dump());
  ask(admin_, "DELETE", "/devices/pi4");
  std::vector<std::string> actions;
  const auto entries = json(get("/audit?limit=4")).at("items");
  for (const auto& entry : entries) actions.push_back(entry.at("action"));
  EXPECT_EQ(actions,
            (std::vector<std::string>{"device.remove", "job.cancel", "job.create", "device.add"}));
  const auto next = json(get("/audit?limit=1")).at("next");
  EXPECT_EQ(json(get("/audit?limit=1&after=" + next.dump())).at("items").at(0).at("action"),
            "job.cancel");
}

TEST_F(FleetAccess, TheServerKnowsWhetherSomebodyMaySignIn) {
  EXPECT_TRUE(api().has_admin().value());
  const auto id = fleet().find_token(core::sha256_hex(admin_)).value()->id;
  ASSERT_TRUE(fleet().revoke_token(id, now()).value());
  EXPECT_FALSE(api().has_admin().value());
}

TEST_F(FleetAccess, ThePageIsThereOrSaysThatItIsNot) {
  const auto reply = api().answer({.method = "GET", .path = "/"});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.type, "text/html; charset=utf-8");
  EXPECT_EQ(api().answer({.method = "GET", .path = "/../secret.txt"}).status, 404);
  EXPECT_EQ(api().answer({.method = "POST", .path = "/"}).status, 405);
}

}  // namespace
}  // namespace fleetfit::server
