#include "fleetfit/app/serving.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "app/devices/kernel_choices.h"
#include "app/elastic/subnet_images.h"
#include "app/models/model_files.h"
#include "fleetfit/adapt/prepared_subnet.h"
#include "fleetfit/app/adapting.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/line_splitter.h"
#include "fleetfit/core/process_info.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/elastic/bundle.h"

namespace fleetfit::app {
namespace {

using namespace std::chrono_literals;
using adapt::SubnetPool;
using elastic::Bundle;

/// Lines of JSON, each in the file before the next thing happens.
class EventFile {
 public:
  Status open(const std::filesystem::path& path) {
    if (path.empty()) return {};
    file_.open(path, std::ios::binary | std::ios::trunc);
    if (file_) return {};
    return fail(ErrorCode::io, fmt::format("{}: cannot be written", path.string()));
  }

  void write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (file_.is_open()) file_ << line << '\n' << std::flush;
  }

 private:
  std::mutex mutex_;
  std::ofstream file_;
};

Status check_pool(const SubnetPool& pool, const ServeRequest& request, const Bundle& bundle,
                  const elastic::SubnetSpace& space) {
  const auto place = request.pool.string();
  if (pool.bundle_sha256 != bundle.manifest_sha256) {
    return refuse(
        fmt::format("{}: it is a pool of another bundle than {}", place, request.bundle.string()));
  }
  for (const auto& entry : pool.entries) {
    const auto design = space.parse(entry.subnet);
    if (!design) return core::within(fmt::format("{}: {}", place, entry.subnet), design.error());
  }
  return {};
}

/// Images of the test part as inputs of the model.
Result<SubnetImages> open_images(const ServeRequest& request, const Bundle& bundle) {
  const auto& first = bundle.models.front().blocks.front().branches.front().graph;
  FLEETFIT_ASSIGN(auto preprocessing,
                  core::within(request.bundle.string(), image_preprocessing(first)));
  FLEETFIT_ASSIGN(auto dataset, data::open_dataset(request.data, data::Split::test));
  const auto& classes = dataset->classes();
  if (!bundle.info.classes.empty() && !data::are_same_classes(bundle.info.classes, classes)) {
    return refuse(fmt::format("{}: its {} classes are not the {} of the model in {}", request.data,
                              classes.size(), bundle.info.classes.size(), request.bundle.string()));
  }
  const std::size_t size = dataset->size();
  const auto order = core::Random(request.seed).split("requests").sample(size, size);
  return SubnetImages{.dataset = std::move(dataset),
                      .order = {order.begin(), order.end()},
                      .preprocessing = std::move(preprocessing)};
}

/// The search must not take the time of the requests.
void give_way() {
  constexpr int kLast = 19;
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLast));
}

class BundleServing final : public Serving {
 public:
  BundleServing(Workplace& workplace, ServeRequest request)
      : workplace_(workplace), request_(std::move(request)) {}

  Status open();

  adapt::Reply answer(std::string_view request) override {
    return adapt::answer_request(*server_, bundle_.info.classes, request);
  }
  std::size_t most_request_bytes() const override {
    return adapt::most_request_bytes(server_->input_shape());
  }
  nlohmann::ordered_json status() const override;
  Status serve_data(const DataRequests& requests, core::Progress& progress,
                    const std::stop_token& stop) override;
  void announce(std::string_view address) override {
    const nlohmann::json event = {
        {"event", "listening"}, {"time", elapsed_s()}, {"address", address}};
    events_.write(core::format_json_line(event));
  }
  ServeSummary summary() const override {
    return {.report = server_->report(),
            .budget_ms = request_.budget_ms,
            .tail = request_.tail,
            .elapsed_s = elapsed_s(),
            .peak_memory_bytes = core::peak_memory_bytes(),
            .bundle_bytes = bundle_bytes_,
            .model_bytes = bundle_.info.model_bytes,
            .memory_limit_bytes = memory_bytes_};
  }

 private:
  double elapsed_s() const {
    return std::chrono::duration<double>(workplace_.clock.now() - started_).count();
  }
  Status open_server(SubnetPool pool);
  Result<SubnetPool> search(double budget_ms, const std::stop_token& stop);
  void wait_until(std::chrono::nanoseconds time, const std::stop_token& stop) const;

  Workplace& workplace_;
  ServeRequest request_;
  EventFile events_;
  Bundle bundle_;
  std::int64_t bundle_bytes_ = 0;
  std::int64_t memory_bytes_ = 0;
  std::unique_ptr<elastic::SubnetSpace> space_;
  std::optional<SubnetImages> images_;
  std::unique_ptr<adapt::SubnetPreparer> preparer_;
  std::unique_ptr<core::Progress> silent_ = core::make_silent_progress();
  std::chrono::nanoseconds started_{};
  std::unique_ptr<adapt::SubnetServer> server_;  // last: its threads use what is above
};

Status BundleServing::open() {
  FLEETFIT_ASSIGN(bundle_, elastic::read_bundle(request_.bundle,
                                                {.batch = 1, .public_key = request_.public_key}));
  std::error_code ignored;
  bundle_bytes_ = static_cast<std::int64_t>(std::filesystem::file_size(request_.bundle, ignored));
  space_ = std::make_unique<elastic::SubnetSpace>(bundle_.models);
  FLEETFIT_ASSIGN(auto pool, adapt::read_pool(request_.pool));
  FLEETFIT_TRY(check_pool(pool, request_, bundle_, *space_));
  if (!request_.data.empty()) {
    FLEETFIT_ASSIGN(images_, open_images(request_, bundle_));
  } else if (request_.search_again) {
    return refuse("a search needs data to search with (--data)");
  }
  return open_server(std::move(pool));
}

Status BundleServing::open_server(SubnetPool pool) {
  FLEETFIT_ASSIGN(const auto quantile, adapt::parse_tail(request_.tail));
  const auto memory = measure::parse_bytes(request_.memory);
  if (!memory) return core::within("memory", memory.error());
  memory_bytes_ = *memory;
  FLEETFIT_ASSIGN(auto options, engine_options(workplace_, request_.device));
  preparer_ = adapt::make_engine_preparer(bundle_.models, *space_, std::move(options));
  FLEETFIT_TRY(events_.open(request_.events));
  adapt::ServerOptions serving{.budget_ms = request_.budget_ms,
                               .monitor = {.quantile = quantile},
                               .memory_bytes = static_cast<std::size_t>(*memory)};
  serving.on_event = [this](const auto& event) { events_.write(adapt::to_json_line(event)); };
  if (request_.search_again) {
    serving.search = [this](double budget_ms, const std::stop_token& stop) {
      return search(budget_ms, stop);
    };
  }
  started_ = workplace_.clock.now();
  FLEETFIT_ASSIGN(server_, adapt::SubnetServer::start(std::move(pool), *preparer_, workplace_.clock,
                                                      std::move(serving)));
  return {};
}

Result<SubnetPool> BundleServing::search(double budget_ms, const std::stop_token& stop) {
  give_way();
  const AdaptRequest request{.bundle = request_.bundle,
                             .public_key = request_.public_key,
                             .data = request_.data,
                             .budget_ms = budget_ms,
                             .device = request_.device,
                             .table = request_.table,
                             .seed = request_.seed};
  FLEETFIT_ASSIGN(auto report, adapt_bundle(workplace_, request, *silent_, stop));
  if (!report.best) {
    return fail(ErrorCode::not_found,
                fmt::format("no subnet takes {:.4g} ms; the fastest, {}, takes {:.4g} ms",
                            budget_ms, report.fastest.subnet, report.fastest.latency_ms));
  }
  return SubnetPool{.device = request_.device,
                    .bundle_sha256 = bundle_.manifest_sha256,
                    .budget_ms = budget_ms,
                    .best = report.best->subnet,
                    .entries = std::move(report.pool)};
}

Status BundleServing::serve_data(const DataRequests& requests, core::Progress& progress,
                                 const std::stop_token& stop) {
  if (!images_) return refuse("there is no data to serve (--data)");
  if (!(requests.seconds > 0) || !std::isfinite(requests.seconds))
    return refuse(fmt::format("seconds: {} is not positive", requests.seconds));
  if (!(requests.rate >= 0) || !std::isfinite(requests.rate))
    return refuse(fmt::format("rate: {} is no number of requests a second", requests.rate));
  core::ProgressTask task(progress, {.name = "serve", .unit = "requests"});
  const auto start = workplace_.clock.now();
  const auto end = start + std::chrono::nanoseconds(std::llround(requests.seconds * 1e9));
  for (std::size_t i = 0; workplace_.clock.now() < end && !stop.stop_requested(); ++i) {
    const std::size_t index = images_->order[i % images_->order.size()];
    FLEETFIT_ASSIGN(const auto batch, data::make_batch(*images_->dataset, std::span(&index, 1),
                                                       images_->preprocessing));
    if (requests.rate > 0) {
      const double due_s = static_cast<double>(i) / requests.rate;
      wait_until(std::min(end, start + std::chrono::nanoseconds(std::llround(due_s * 1e9))), stop);
    }
    FLEETFIT_TRY(core::within(request_.data, server_->serve(batch.values, batch.labels[0])));
    task.advance();
  }
  return {};
}

void BundleServing::wait_until(std::chrono::nanoseconds time, const std::stop_token& stop) const {
  while (!stop.stop_requested()) {
    const auto left = time - workplace_.clock.now();
    if (left <= 0ns) return;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, 50ms));
  }
}

nlohmann::ordered_json BundleServing::status() const {
  auto json = core::to_json(summary());
  json["bundle"] = bundle_.manifest_sha256;
  json["input_shape"] = server_->input_shape();
  json["output_shape"] = server_->output_shape();
  json["classes"] = bundle_.info.classes;
  return json;
}

// --- lines ---

/// Adds what can be read within a short while. False at the end.
Result<bool> read_more(int input, core::LineSplitter& lines) {
  constexpr int kTickMs = 50;
  pollfd waiting{.fd = input, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, kTickMs) <= 0) return true;
  std::array<char, 65536> buffer;
  const auto count = ::read(input, buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (count < 0)
    return fail(ErrorCode::io, fmt::format("requests cannot be read (error {})", errno));
  lines.add({buffer.data(), static_cast<std::size_t>(count)});
  return count > 0;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

core::Fields fields_of(const ServeSummary*) {
  using Summary = ServeSummary;
  using Report = adapt::ServingReport;
  constexpr auto kReport = &Summary::report;
  static constexpr core::Field kAll[] = {
      core::field<kReport, &Report::requests>("requests"),
      core::computed("within_budget",
                     [](const Summary& s) {
                       return adapt::share_of(s.report.within_budget, s.report.requests);
                     }),
      core::computed("within_budget_after_1s",
                     [](const Summary& s) {
                       const auto& load = s.report.load;
                       return adapt::share_of(load.settled_within_budget, load.settled);
                     }),
      core::field<kReport, &Report::switches>("switches"),
      core::computed(
          "accuracy",
          [](const Summary& s) { return adapt::share_of(s.report.right, s.report.labelled); }),
      core::field<kReport, &Report::median_ms>("median_ms"),
      core::field<kReport, &Report::p95_ms>("p95_ms"),
      FLEETFIT_MEMBERS(Summary, peak_memory_bytes),
      core::field<kReport, &Report::prepared_bytes>("prepared_bytes"),
      FLEETFIT_MEMBERS(Summary, memory_limit_bytes, bundle_bytes, model_bytes),
      core::field<kReport, &Report::longest_switch_us>("longest_switch_us"),
      FLEETFIT_MEMBERS(Summary, budget_ms, tail),
      core::field<kReport, &Report::budget_met>("budget_met"),
      core::field<kReport, &Report::ratio>("ratio"),
      core::field<kReport, &Report::subnet>("subnet"),
      FLEETFIT_MEMBERS(Summary, elapsed_s),
      core::field<kReport, &Report::load>("load"),
      core::field<kReport, &Report::subnets>("subnets")};
  return {.all = kAll};
}

Result<std::unique_ptr<Serving>> open_serving(Workplace& workplace, const ServeRequest& request) {
  auto serving = std::make_unique<BundleServing>(workplace, request);
  FLEETFIT_TRY(serving->open());
  return serving;
}

Status serve_lines(Serving& serving, int input,
                   const std::function<Status(std::string_view)>& write,
                   const std::stop_token& stop) {
  const std::size_t most = serving.most_request_bytes();
  core::LineSplitter lines(most);
  bool more = true;
  while (!stop.stop_requested()) {
    auto line = lines.next();
    if (!line && more) {
      FLEETFIT_ASSIGN(more, read_more(input, lines));
      continue;
    }
    if (!line) line = lines.rest();
    if (!line) return {};
    const auto& [text, too_long] = *line;
    if (!too_long && is_blank(text)) continue;
    const auto reply =
        too_long ? adapt::refusal(fmt::format("request: it is longer than {} bytes", most))
                 : serving.answer(text);
    FLEETFIT_TRY(write(reply.json));
  }
  return {};
}

}  // namespace fleetfit::app
