#include <fstream>

#include "tests/server/fleet_api_fixture.h"

namespace fleetfit::server {
namespace {

class FleetViews : public FleetApiTest {
 protected:
  void add_measurement(const std::string& device, const std::string& model, double ms,
                       const std::string& space = {}) {
    store::MeasurementRecord record{
        .device = device,
        .device_fingerprint = "f",
        .model_hash = model,
        .model_name = "net " + model,
        .latency = store::Latency{.median_ms = ms, .ci95_ms = {ms - 0.1, ms + 0.1}},
        .started = now()};
    if (!space.empty()) record.space = space;
    const auto id = store().add_measurement(record);
    ASSERT_TRUE(id) << id.error().message;
  }

  /// As if the octets had come over the line.
  ApiReply upload(const std::string& name, const std::string& content) {
    const auto file = scratch_.path() / "files" / "incoming" / "sent";
    std::ofstream(file, std::ios::binary) << content;
    return api().answer(
        {.method = "POST",
         .path = "/api/v1/files",
         .query = "name=" + name,
         .authorization = "Bearer " + admin_,
         .upload =
             Upload{.file = file, .sha256 = core::sha256_hex(content), .bytes = content.size()}});
  }
};

TEST_F(FleetViews, DevicesAreListedByNameStateAndText) {
  ASSERT_EQ(post("/devices", {{"name", "new-one"}}).status, 201);
  add_device("pi4");
  wait(100);
  const auto agent = add_device("pi5");
  EXPECT_EQ(as_agent(agent, "heartbeat", {{"serving", {{"subnet", "oso"}}}}).status, 200);
  const auto names = [&](const std::string& query) {
    std::vector<std::string> all;
    const auto items = json(get("/devices" + query)).at("items");
    for (const auto& item : items)
      all.push_back(item.at("name").get<std::string>() + " " + item.at("state").get<std::string>());
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(""), (Names{"new-one never", "pi4 offline", "pi5 online"}));
  EXPECT_EQ(names("?state=online"), (Names{"pi5 online"}));
  EXPECT_EQ(names("?state=offline"), (Names{"pi4 offline"}));
  EXPECT_EQ(names("?state=never"), (Names{"new-one never"}));
  EXPECT_EQ(names("?query=BOARD"), (Names{"pi4 offline", "pi5 online"}));
  EXPECT_EQ(names("?limit=1&after=new-one"), (Names{"pi4 offline"}));
  EXPECT_EQ(json(get("/devices?limit=1")).at("next"), "new-one");
  EXPECT_EQ(json(get("/devices/pi5")).at("serving").at("subnet"), "oso");
  const auto counts = json(get("/summary")).at("devices");
  EXPECT_EQ(counts, (Json{{"all", 3}, {"online", 1}, {"offline", 1}, {"never", 1}}));
}

TEST_F(FleetViews, ANewDeviceGetsATokenThatIsGoneWithIt) {
  const auto created = json(post("/devices", {{"name", "pi4"}}));
  const auto token = created.at("token").get<std::string>();
  EXPECT_EQ(as_agent(token, "register", {{"name", "pi4"}, {"version", "1"}}).status, 200);
  EXPECT_EQ(as_agent(token, "register", {{"name", "pi5"}, {"version", "1"}}).status, 403);
  EXPECT_EQ(post("/devices", {{"name", "pi4"}}).status, 409);
  EXPECT_EQ(post("/devices", {{"name", "../x"}}).status, 400);
  EXPECT_EQ(ask(admin_, "DELETE", "/devices/pi4").status, 200);
  EXPECT_EQ(ask(admin_, "DELETE", "/devices/pi4").status, 404);
  EXPECT_EQ(as_agent(token, "heartbeat", Json::object()).status, 401);
  EXPECT_EQ(get("/devices/pi4").status, 404);
}

TEST_F(FleetViews, LatenciesAreTheNewestOfEachModelOnEachDevice) {
  add_measurement("a", "m1", 10);
  wait(1);
  add_measurement("a", "m1", 11);
  add_measurement("b", "m2", 20);
  const auto all = json(get("/latencies"));
  EXPECT_EQ(all.at("models"), Json({"net m1", "net m2"}));
  EXPECT_EQ(all.at("devices"), Json({"a", "b"}));
  ASSERT_EQ(all.at("cells").size(), 2u);
  EXPECT_EQ(all.at("cells")[0].at("median_ms"), 11.0);
  EXPECT_EQ(all.at("cells")[0].at("ci95"), Json({10.9, 11.1}));
  add_measurement("a", "m2", 12);  // seen at once
  EXPECT_EQ(json(get("/latencies?models=m2&devices=a,zz")).at("cells").size(), 1u);
  EXPECT_EQ(json(get("/summary")).at("measurements"), 4);
  const auto models = json(get("/models")).at("items");
  EXPECT_EQ(models.at(1).at("measured_on"), 2);
  EXPECT_EQ(json(get("/models?limit=1")).at("next"), "m1");
  EXPECT_EQ(json(get("/models?after=m1")).at("items").size(), 1u);
}

TEST_F(FleetViews, ModelsOfTheSameNameAreToldApart) {
  auto record = store::MeasurementRecord{.device = "a",
                                         .model_hash = std::string(64, '1'),
                                         .model_name = "net",
                                         .latency = store::Latency{.median_ms = 1},
                                         .started = now()};
  ASSERT_TRUE(store().add_measurement(record));
  record.model_hash = std::string(64, '2');
  ASSERT_TRUE(store().add_measurement(record));
  EXPECT_EQ(json(get("/latencies")).at("models"), Json({"net 11111111", "net 22222222"}));
}

TEST_F(FleetViews, CorrelationsNeedThreeModelsInCommon) {
  // Ranks on a: 1 2 3 4; on b: 1 2 4 3. Spearman: 1 - 6 (1 + 1) / (4 (16 - 1)) = 0.8.
  const double b_ms[] = {5, 6, 8, 7};
  for (int i = 0; i < 4; ++i) {
    const auto model = "m" + std::to_string(i);
    add_measurement("a", model, 1 + i, "nasbench201");
    add_measurement("b", model, b_ms[i], "nasbench201");
    if (i < 2) add_measurement("c", model, 3 - i);
  }
  const auto all = json(get("/correlations"));
  EXPECT_EQ(all.at("devices"), Json({"a", "b", "c"}));
  EXPECT_NEAR(all.at("srcc")[0][1].get<double>(), 0.8, 1e-12);
  EXPECT_EQ(all.at("srcc")[1][1], 1.0);
  EXPECT_TRUE(all.at("srcc")[0][2].is_null());
  EXPECT_EQ(all.at("designs")[0], Json({4, 4, 2}));
  add_measurement("d", "no design", 1);
  EXPECT_EQ(json(get("/correlations?space=nasbench201")).at("devices"), Json({"a", "b", "c"}));
}

TEST_F(FleetViews, TheParetoFrontIsThatOfTheNewestAdaptation) {
  const auto agent = add_device("pi4");
  const auto bundle = add_file("a bundle", "net.ffb");
  EXPECT_TRUE(json(get("/devices/pi4/pareto")).at("points").empty());
  for (const double latency : {3.0, 4.0}) {
    post("/jobs", {{"device", "pi4"},
                   {"kind", "adapt"},
                   {"request", {{"bundle", bundle}, {"data", "fashion-mnist"}, {"budget_ms", 5}}}});
    const auto job = json(as_agent(agent, "claim", Json::object())).at("jobs").at(0);
    const Json found{{"best", {{"subnet", "os"}, {"latency_ms", latency}, {"accuracy", 0.9}}},
                     {"pool", {{{"subnet", "os"}, {"latency_ms", latency}, {"accuracy", 0.9}}}}};
    as_agent(agent, "results", outcome(job.at("id"), 1, found));
  }
  const auto pareto = json(get("/devices/pi4/pareto"));
  EXPECT_EQ(pareto.at("points"),
            Json({{{"design", "os"}, {"latency_ms", 4.0}, {"accuracy", 0.9}}}));
  EXPECT_EQ(pareto.at("chosen"), "os");
  EXPECT_EQ(pareto.at("budget_ms"), 5.0);
  EXPECT_TRUE(json(get("/devices/pi4/pareto?model=" + std::string(64, 'c'))).at("points").empty());
}

TEST_F(FleetViews, FilesAreCheckedBeforeTheyAreKept) {
  EXPECT_EQ(upload("net.onnx", "no model").status, 400);
  EXPECT_EQ(upload("net.ffb", "no bundle").status, 400);
  EXPECT_EQ(upload("pool.json", "{").status, 400);
  EXPECT_EQ(upload("key.pem", "-----BEGIN PRIVATE KEY-----").status, 400);
  EXPECT_EQ(upload("..%2Fx", "data").status, 400);
  EXPECT_EQ(upload("", "data").status, 400);
  const auto problem_text = problem(upload("net.onnx", "no model"));
  EXPECT_TRUE(problem_text.starts_with("net.onnx")) << problem_text;
  EXPECT_EQ(problem_text.find(scratch_.path().string()), std::string::npos);
  EXPECT_TRUE(json(get("/files")).at("items").empty());

  const auto kept = upload("data.bin", "some data");
  ASSERT_EQ(kept.status, 201) << kept.body;
  EXPECT_EQ(json(kept).at("kind"), "data");
  const auto hash = json(kept).at("hash").get<std::string>();
  const auto reply = get("/files/" + hash);
  ASSERT_TRUE(reply.file);
  std::ifstream file(*reply.file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "some data");
  EXPECT_EQ(get("/files/" + std::string(64, '0')).status, 404);
  EXPECT_EQ(json(get("/files?kind=onnx")).at("items").size(), 0u);
  EXPECT_EQ(json(get("/files?kind=data")).at("items").size(), 1u);
}

TEST_F(FleetViews, StudiesThatAreNotThereAreNotFound) {
  EXPECT_EQ(json(get("/studies")).at("items").size(), 0u);
  EXPECT_EQ(get("/studies/none").status, 404);
  EXPECT_EQ(get("/studies/none/trials").status, 404);
  EXPECT_EQ(get("/studies/none/charts").status, 404);
}

}  // namespace
}  // namespace fleetfit::server
