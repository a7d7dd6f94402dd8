#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/app/learning.h"

namespace fleetfit::app {

using Json = nlohmann::ordered_json;

Json to_json(const LearnTrainReport& report) {
  return {{"space", report.space},       {"devices", report.devices},
          {"designs", report.designs},   {"rounds", report.rounds},
          {"measured", report.measured}, {"rank_correlation", report.rank_correlation},
          {"margin", report.margin},     {"elapsed_s", report.elapsed_s}};
}

Json to_json(const LearnApplyReport& report) {
  const auto& answer = report.answer;
  Json predicted;
  Json safe;
  Json spread;
  Json risk;
  for (std::size_t i = 0; i < report.costs.size(); ++i) {
    predicted[report.costs[i]] = answer.costs[i].value;
    safe[report.costs[i]] = answer.costs[i].safe;
    spread[report.costs[i]] = answer.costs[i].spread;
    risk[report.costs[i]] = answer.costs[i].risk;
  }
  predicted["accuracy"] = answer.accuracy;
  spread["accuracy"] = answer.accuracy_spread;
  auto doubts = Json::array();
  for (const auto doubt : answer.doubts) doubts.push_back(learned::to_string(doubt));
  return {{"design", report.space->format(answer.design)},
          {"space", report.space->name()},
          {"device", report.device},
          {"predicted", std::move(predicted)},
          {"safe", std::move(safe)},
          {"spread", std::move(spread)},
          {"risk", std::move(risk)},
          {"keeps_limits", answer.keeps_limits},
          {"by", answer.by_search ? "search" : "optimizer"},
          {"doubts", std::move(doubts)},
          {"distance", report.distance},
          {"missing_features", report.missing},
          {"judged", answer.judged},
          {"elapsed_us", report.elapsed_us}};
}

Json to_json(const LearnBulkReport& report) {
  return {{"devices", report.devices},
          {"within", report.within},
          {"unsure", report.unsure},
          {"designs", report.designs},
          {"elapsed_s", report.elapsed_s},
          {"answer_us", report.answer_us},
          {"peak_memory_bytes", report.peak_memory_bytes}};
}

Json to_json(const LearnEvalReport& report) {
  auto devices = Json::array();
  for (const auto& one : report.devices) {
    devices.push_back({{"device", one.device},
                       {"split", one.split},
                       {"srcc", one.srcc},
                       {"mape", one.mape},
                       {"few_shot_srcc", one.few_shot_srcc},
                       {"few_shot_same_srcc",
                        one.few_shot_same_srcc ? Json(*one.few_shot_same_srcc) : Json(nullptr)},
                       {"distance", one.distance}});
  }
  auto ways = Json::array();
  for (const auto& one : report.ways) {
    ways.push_back({{"way", one.way},
                    {"budgets", name_of(one.spread)},
                    {"cases", one.cases},
                    {"median_loss", one.median_loss},
                    {"p90_loss", one.p90_loss},
                    {"mean_loss", one.mean_loss},
                    {"kept", one.kept},
                    {"answer_us", one.answer_us}});
  }
  auto outcomes = Json::array();
  for (const auto& one : report.outcomes) {
    outcomes.push_back({{"device", one.device},
                        {"way", one.way},
                        {"budgets", name_of(one.spread)},
                        {"budget_ms", one.budget_ms},
                        {"latency_ms", one.latency_ms},
                        {"accuracy", one.accuracy},
                        {"best_accuracy", one.best_accuracy}});
  }
  return {{"space", report.space},   {"method", report.method},
          {"ways", std::move(ways)}, {"devices", std::move(devices)},
          {"unsure", report.unsure}, {"training_s", report.training_s},
          {"advice", report.advice}, {"outcomes", std::move(outcomes)}};
}

}  // namespace fleetfit::app
