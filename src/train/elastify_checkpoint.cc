#include "train/elastify_checkpoint.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/sha256.h"

namespace fleetfit::train {
namespace {

using core::JsonView;

constexpr std::string_view kType = "elastify-checkpoint";
constexpr int kVersion = 1;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 36;

nlohmann::json to_json(const ElastifyEpoch& epoch) {
  auto ranges = nlohmann::json::array();
  for (const auto& range : epoch.validation) {
    ranges.push_back({{"low", range.low},
                      {"high", range.high},
                      {"mean", range.mean},
                      {"subnets", range.subnets}});
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
                            .subnets = static_cast<std::size_t>(fields.count("subnets"))};
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

Result<ElastifyCheckpoint> read_header(const JsonView& view, std::string_view weights) {
  Fields fields(view);
  const auto type = fields.text("type");
  const auto version = fields.count("version");
  if (auto& status = fields.status(); !status) return tl::unexpected(status.error());
  if (type != kType || version != kVersion) return view.error("is no checkpoint of this version");
  ElastifyCheckpoint checkpoint{.subject = fields.text("subject"),
                                .stage = static_cast<std::size_t>(fields.count("stage")),
                                .epoch = static_cast<int>(fields.count("epoch")),
                                .step = fields.count("step"),
                                .loss_sum = fields.number("loss_sum"),
                                .elapsed_s = fields.number("elapsed_s")};
  for (auto& item : fields.items("epochs"))
    checkpoint.epochs.push_back(read_epoch(Fields(item), fields));
  const auto sha256 = fields.text("weights_sha256");
  if (auto& status = fields.status(); !status) return tl::unexpected(status.error());
  if (core::sha256_hex(weights) != sha256)
    return view.error("is damaged: its weights have changed");
  checkpoint.weights = weights;
  return checkpoint;
}

}  // namespace

Status write_checkpoint(const ElastifyCheckpoint& checkpoint, const std::filesystem::path& file) {
  auto epochs = nlohmann::json::array();
  for (const auto& epoch : checkpoint.epochs) epochs.push_back(to_json(epoch));
  const nlohmann::json header = {{"type", kType},
                                 {"version", kVersion},
                                 {"subject", checkpoint.subject},
                                 {"stage", checkpoint.stage},
                                 {"epoch", checkpoint.epoch},
                                 {"step", checkpoint.step},
                                 {"loss_sum", checkpoint.loss_sum},
                                 {"elapsed_s", checkpoint.elapsed_s},
                                 {"epochs", std::move(epochs)},
                                 {"weights_sha256", core::sha256_hex(checkpoint.weights)}};
  return core::write_file(file, core::format_json_line(header) + "\n" + checkpoint.weights);
}

Result<ElastifyCheckpoint> read_checkpoint(const std::filesystem::path& file) {
  const auto bytes = core::read_file(file, {.max_bytes = kMostBytes});
  if (!bytes) return tl::unexpected(bytes.error());
  const std::string_view all = *bytes;
  const auto end = all.find('\n');
  if (end == std::string_view::npos)
    return fail(ErrorCode::invalid_input, file.string() + ": is no checkpoint");
  const auto header = core::parse_json(all.substr(0, end), file.string());
  if (!header) return tl::unexpected(header.error());
  return read_header(JsonView(*header, file.string()), all.substr(end + 1));
}

}  // namespace fleetfit::train
