#include "train/elastify_place.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "fleetfit/core/json.h"

namespace fleetfit::train {
namespace {

using core::JsonView;

nlohmann::json to_json(const ElastifyEpoch& epoch) {
  auto ranges = nlohmann::json::array();
  for (const auto& range : epoch.validation) {
    ranges.push_back({{"low", range.low},
                      {"high", range.high},
                      {"mean", range.mean},
                      {"subnets", range.subnets}});
    if (range.mean_iou) ranges.back()["mean_iou"] = *range.mean_iou;
  }
  return {{"stage", epoch.stage},
          {"epoch", epoch.epoch},
          {"loss", epoch.loss},
          {"validation", std::move(ranges)}};
}

/// Reads fields one after the other and remembers the first that is wrong.
class Fields {
 public:
  explicit Fields(JsonView view) : view_(std::move(view)) {}

  double number(std::string_view key) { return take(view_.number(key), 0.0); }
  std::optional<double> number_if_there(std::string_view key) {
    const auto found = take(view_.find(key), std::optional<JsonView>());
    if (!found) return std::nullopt;
    return take(found->as_number(), 0.0);
  }
  std::int64_t count(std::string_view key) { return take(view_.integer(key, {.min = 0}), {}); }
  std::string text(std::string_view key) { return take(view_.text(key), {}); }
  std::vector<JsonView> items(std::string_view key) { return take(view_.items(key), {}); }
  void note(const Status& status) {
    if (!status && status_) status_ = status;
  }
  const Status& status() const { return status_; }

 private:
  template <class T>
  T take(Result<T> found, T otherwise) {
    if (found) return *std::move(found);
    if (status_) status_ = tl::unexpected(std::move(found.error()));
    return otherwise;
  }

  JsonView view_;
  Status status_;
};

RangeAccuracy read_range(Fields fields, Fields& parent) {
  const RangeAccuracy range{.low = fields.number("low"),
                            .high = fields.number("high"),
                            .mean = fields.number("mean"),
                            .subnets = static_cast<std::size_t>(fields.count("subnets")),
                            .mean_iou = fields.number_if_there("mean_iou")};
  parent.note(fields.status());
  return range;
}

ElastifyEpoch read_epoch(Fields fields, Fields& parent) {
  ElastifyEpoch epoch{.stage = fields.text("stage"),
                      .epoch = static_cast<int>(fields.count("epoch")),
                      .loss = fields.number("loss")};
  for (auto& item : fields.items("validation"))
    epoch.validation.push_back(read_range(Fields(item), fields));
  parent.note(fields.status());
  return epoch;
}

}  // namespace

std::string to_notes(const ElastifyPlace& place) {
  auto epochs = nlohmann::json::array();
  for (const auto& epoch : place.epochs) epochs.push_back(to_json(epoch));
  const nlohmann::json notes = {{"elastification", place.subject},
                                {"stage", place.stage},
                                {"epoch", place.epoch},
                                {"step", place.step},
                                {"loss_sum", place.loss_sum},
                                {"elapsed_s", place.elapsed_s},
                                {"epochs", std::move(epochs)}};
  return core::format_json_line(notes);
}

Result<ElastifyPlace> read_notes(const std::string& notes, const std::string& name) {
  FLEETFIT_ASSIGN(const auto document, core::parse_json(notes, name));
  Fields fields(JsonView(document, name));
  ElastifyPlace place{.subject = fields.text("elastification"),
                      .stage = static_cast<std::size_t>(fields.count("stage")),
                      .epoch = static_cast<int>(fields.count("epoch")),
                      .step = fields.count("step"),
                      .loss_sum = fields.number("loss_sum"),
                      .elapsed_s = fields.number("elapsed_s")};
  for (auto& item : fields.items("epochs"))
    place.epochs.push_back(read_epoch(Fields(item), fields));
  FLEETFIT_TRY(fields.status());
  return place;
}

}  // namespace fleetfit::train
