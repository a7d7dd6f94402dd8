#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "fleetfit/core/json.h"
#include "tests/server/fleet_api_fixture.h"
#include "tests/source_dir.h"
#include "tests/study/example_study.h"

namespace fleetfit::server {
namespace {

using Json = nlohmann::json;

const Json& description() {
  static const Json document = core::read_json(source_dir() + "/docs/formats/api.json").value();
  return document;
}

/// Checks values against the part of JSON Schema that the description uses.
class Validator {
 public:
  /// What is wrong, with its place; empty if nothing is.
  std::vector<std::string> problems;

  void check(const Json& schema, const Json& value, const std::string& place) {
    if (const auto ref = schema.find("$ref"); ref != schema.end())
      return check(resolve(*ref), value, place);
    for (const auto& [key, unused] : schema.items())
      if (!kKnown.contains(key)) problems.push_back(place + ": the test does not know " + key);
    if (schema.contains("type") && !has_type(schema.at("type"), value))
      return problems.push_back(place + ": " + value.dump() + " is no " + schema.at("type").dump());
    if (schema.contains("enum") && !std::ranges::count(schema.at("enum"), value))
      problems.push_back(place + ": " + value.dump() + " is none of " + schema.at("enum").dump());
    if (value.is_object()) check_object(schema, value, place);
    if (value.is_array() && schema.contains("items"))
      for (std::size_t i = 0; i < value.size(); ++i)
        check(schema.at("items"), value[i], place + "[" + std::to_string(i) + "]");
    if (schema.contains("format")) check_date(value, place);
  }

 private:
  inline static const std::set<std::string> kKnown = {"type",
                                                      "properties",
                                                      "required",
                                                      "items",
                                                      "enum",
                                                      "description",
                                                      "format",
                                                      "pattern",
                                                      "minimum",
                                                      "maximum",
                                                      "additionalProperties"};

  static const Json& resolve(const std::string& ref) {
    return description().at(Json::json_pointer(ref.substr(1)));
  }

  static bool has_type(const Json& type, const Json& value) {
    if (type.is_array())
      return std::ranges::any_of(type, [&](const Json& one) { return has_type(one, value); });
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    return type == "null" && value.is_null();
  }

  void check_object(const Json& schema, const Json& value, const std::string& place) {
    for (const auto& key : schema.value("required", Json::array()))
      if (!value.contains(key.get<std::string>()))
        problems.push_back(place + ": " + key.dump() + " is missing");
    const auto properties = schema.value("properties", Json::object());
    for (const auto& [key, part] : value.items()) {
      if (properties.contains(key))
        check(properties.at(key), part, place + "." + key);
      else if (schema.contains("additionalProperties"))
        check(schema.at("additionalProperties"), part, place + "." + key);
    }
  }

  void check_date(const Json& value, const std::string& place) {
    if (value.is_null()) return;
    const auto text = value.get<std::string>();
    if (text.size() < 20 || text[10] != 'T' || text.back() != 'Z')
      problems.push_back(place + ": " + text + " is no date");
  }
};

std::set<std::string> words(std::string_view text) {
  std::set<std::string> all;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) all.insert(word);
  return all;
}

std::string small(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(),
                         [](char c) { return static_cast<char>(std::tolower(c)); });
  return all;
}

TEST(ApiDescription, HasEveryRouteWithItsRolesAndParameters) {
  std::set<std::string> described;
  for (const auto& [path, operations] : description().at("paths").items())
    for (const auto& [method, operation] : operations.items())
      described.insert(method + " " + path);
  std::set<std::string> served;
  for (const auto& route : describe_routes()) {
    const auto name = small(route.method) + " " + std::string(route.pattern);
    served.insert(name);
    if (!described.contains(name)) continue;
    const auto& operation =
        description().at("paths").at(std::string(route.pattern)).at(small(route.method));
    std::set<std::string> query;
    for (const auto& parameter : operation.value("parameters", Json::array()))
      if (parameter.at("in") == "query") query.insert(parameter.at("name"));
    EXPECT_EQ(query, words(route.query)) << name;
    std::set<std::string> roles;
    for (const auto& role : operation.at("x-roles")) roles.insert(role);
    EXPECT_EQ(roles, words(route.roles)) << name;
    EXPECT_EQ(operation.contains("security"), route.roles.empty()) << name;
  }
  EXPECT_EQ(described, served);
}

class ApiAnswers : public FleetApiTest {
 protected:
  /// Asks, and checks answer and request against the description.
  Json check(const std::string& token, const std::string& method, const std::string& pattern,
             const std::string& target, const Json& body = nullptr) {
    const auto reply = ask(token, method, target, body);
    const auto& operation = description().at("paths").at(pattern).at(small(method));
    const auto status = std::to_string(reply.status);
    EXPECT_TRUE(operation.at("responses").contains(status))
        << method << " " << target << " " << status << " " << reply.body;
    if (!operation.at("responses").contains(status)) return {};
    asked_.insert(small(method) + " " + pattern);
    Validator validator;
    if (!body.is_null())
      validator.check(operation.at("requestBody").at("content").at("application/json").at("schema"),
                      body, "request");
    const auto& content = operation.at("responses").at(status).at("content");
    const auto type = reply.type.substr(0, reply.type.find(';'));
    EXPECT_TRUE(content.contains(type)) << method << " " << target << " " << type;
    const bool is_json = content.contains("application/json");
    if (is_json)
      validator.check(content.at("application/json").at("schema"), json(reply), "answer");
    EXPECT_THAT(validator.problems, ::testing::IsEmpty()) << method << " " << target;
    return is_json ? json(reply) : Json();
  }
  Json admin(const std::string& method, const std::string& pattern, const std::string& target,
             const Json& body = nullptr) {
    return check(admin_, method, pattern, target, body);
  }

  void ask_agent_routes(const std::string& agent, const std::string& model) {
    check(agent, "POST", "/agent/register", "/agent/register",
          {{"name", "pi4"}, {"version", "1"}, {"hardware", "a board"}, {"probe", {{"cpu", "a"}}}});
    const auto job = admin("POST", "/jobs", "/jobs",
                           {{"device", "pi4"},
                            {"kind", "measure"},
                            {"key", "k"},
                            {"limits", {{"seconds", 5}}},
                            {"request", {{"model", model}, {"name", "net.onnx"}}}});
    const auto id = job.at("id").get<std::int64_t>();
    check(agent, "GET", "/files/{hash}", "/files/" + model);
    check(agent, "POST", "/agent/claim", "/agent/claim", {{"most", 3}});
    check(agent, "POST", "/agent/heartbeat", "/agent/heartbeat",
          {{"running", {{{"id", id}, {"attempt", 1}}}}, {"serving", {{"subnet", "o"}}}});
    check(agent, "POST", "/agent/results", "/agent/results", outcome(id, 1, measured(model)));
    check(agent, "POST", "/agent/events", "/agent/events",
          {{"events", {{{"sequence", 1}, {"time", "2026-11-16T08:00:00.000Z"}, {"kind", "log"}}}}});
    admin("GET", "/jobs/{id}", "/jobs/" + std::to_string(id));
  }

  void ask_studies() {
    study::fill_study(store(), study::kExampleStudy, {.count = 60});
    admin("GET", "/studies", "/studies");
    admin("GET", "/studies/{name}", "/studies/fashion");
    const auto page = admin("GET", "/studies/{name}/trials", "/studies/fashion/trials?limit=20");
    EXPECT_EQ(page.at("items").size(), 20u);
    EXPECT_EQ(page.at("next"), 19);
    const auto charts = admin("GET", "/studies/{name}/charts", "/studies/fashion/charts");
    EXPECT_EQ(charts.at("trials_total"), 60);
    EXPECT_GT(charts.at("history").size(), 10u);
    EXPECT_FALSE(charts.at("parallel").at("lines").empty());
  }

  std::set<std::string> asked_;
};

TEST_F(ApiAnswers, AreAsTheDescriptionSays) {
  const auto model = add_file("a model");
  check("", "GET", "/health", "/health");
  admin("GET", "/openapi.json", "/openapi.json");
  check("", "POST", "/session", "/session", {{"token", viewer_}});
  admin("GET", "/session", "/session");
  const auto device = admin("POST", "/devices", "/devices", {{"name", "pi4"}});
  ask_agent_routes(device.at("token"), model);
  admin("GET", "/summary", "/summary");
  admin("GET", "/devices", "/devices");
  admin("GET", "/devices/{name}", "/devices/pi4");
  admin("GET", "/devices/{name}/pareto", "/devices/pi4/pareto");
  admin("GET", "/models", "/models");
  admin("GET", "/files", "/files");
  admin("GET", "/latencies", "/latencies");
  admin("GET", "/correlations", "/correlations");
  const auto measurements = admin("GET", "/measurements", "/measurements");
  admin("GET", "/measurements/{id}",
        "/measurements/" + measurements.at("items").at(0).at("id").dump());
  admin("GET", "/jobs", "/jobs");
  const auto job = admin("POST", "/jobs", "/jobs",
                         {{"device", "pi4"}, {"kind", "probe"}, {"request", Json::object()}});
  admin("DELETE", "/jobs/{id}", "/jobs/" + job.at("id").dump());
  ask_studies();
  admin("GET", "/events", "/events");
  admin("GET", "/events/stream", "/events/stream");
  const auto token =
      admin("POST", "/tokens", "/tokens",
            {{"name", "a"}, {"role", "viewer"}, {"expires", "2099-01-01T00:00:00Z"}});
  admin("GET", "/tokens", "/tokens");
  admin("DELETE", "/tokens/{id}", "/tokens/" + token.at("id").dump());
  admin("DELETE", "/devices/{name}", "/devices/pi4");
  admin("GET", "/audit", "/audit");
  admin("DELETE", "/session", "/session");

  std::set<std::string> all;
  for (const auto& route : describe_routes())
    all.insert(small(route.method) + " " + std::string(route.pattern));
  all.erase("post /files");  // takes octets; fleet_views_test.cc sends some
  EXPECT_EQ(asked_, all);
}

TEST_F(ApiAnswers, ErrorsHaveOneForm) {
  for (const auto& reply : {ask("", "GET", "/jobs"), get("/none"), get("/jobs?limit=x"),
                            ask(viewer_, "POST", "/devices", {{"name", "x"}})}) {
    Validator validator;
    validator.check(description().at("components").at("schemas").at("Error"), json(reply), "error");
    EXPECT_THAT(validator.problems, ::testing::IsEmpty());
  }
}

TEST(ApiDescription, TheTestFindsAnswersThatAreWrong) {
  Validator validator;
  const Json schema = {{"$ref", "#/components/schemas/Token"}};
  validator.check(schema, {{"id", "1"}, {"role", "king"}}, "token");
  EXPECT_THAT(
      validator.problems,
      ::testing::IsSupersetOf({::testing::HasSubstr("token.id"), ::testing::HasSubstr("token.role"),
                               ::testing::HasSubstr("\"created\" is missing")}));
}

}  // namespace
}  // namespace fleetfit::server
