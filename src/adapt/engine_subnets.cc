#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fleetfit/adapt/prepared_subnet.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::adapt {
namespace {

using engine::Program;

class EngineSubnet final : public PreparedSubnet {
 public:
  explicit EngineSubnet(Program program)
      : program_(std::move(program)),
        input_shape_(shape_of(program_.inputs()[0])),
        output_shape_(shape_of(program_.outputs()[0])) {}

  Status run(std::span<const float> input) override {
    const auto bytes = std::as_bytes(input);
    const auto place = program_.input(0);
    if (bytes.size() != place.size()) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("input: expected {} values, found {}", place.size() / sizeof(float),
                              input.size()));
    }
    std::ranges::copy(bytes, place.begin());
    return program_.run();
  }

  std::span<const float> output() const override {
    const auto bytes = program_.output(0);
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  const std::vector<std::int64_t>& input_shape() const override { return input_shape_; }
  const std::vector<std::int64_t>& output_shape() const override { return output_shape_; }
  std::size_t bytes() const override { return program_.weight_bytes() + program_.arena_bytes(); }

 private:
  static std::vector<std::int64_t> shape_of(const engine::Port& port) {
    return {port.shape.begin(), port.shape.end()};
  }

  Program program_;
  std::vector<std::int64_t> input_shape_;
  std::vector<std::int64_t> output_shape_;
};

Status check_ports(const Program& program) {
  const auto is_one_float = [](std::span<const engine::Port> ports) {
    return ports.size() == 1 && ports[0].dtype == graph::DType::f32;
  };
  if (is_one_float(program.inputs()) && is_one_float(program.outputs())) return {};
  return fail(ErrorCode::unsupported, "it has not one input and one output of float32");
}

class EnginePreparer final : public SubnetPreparer {
 public:
  EnginePreparer(const std::vector<elastic::Supernet>& models, const elastic::SubnetSpace& space,
                 engine::EngineOptions options)
      : models_(models), space_(space), options_(std::move(options)) {}

  Result<std::unique_ptr<PreparedSubnet>> prepare(const std::string& subnet) override {
    auto prepared = prepare_program(subnet);
    if (!prepared) return core::within("subnet " + subnet, std::move(prepared.error()));
    const auto bytes = prepared->input(0);
    std::ranges::fill(bytes, std::byte{0});
    if (auto ok = prepared->run(); !ok) return core::within("subnet " + subnet, ok.error());
    return std::make_unique<EngineSubnet>(*std::move(prepared));
  }

 private:
  Result<Program> prepare_program(const std::string& subnet) {
    FLEETFIT_ASSIGN(const auto design, space_.parse(subnet));
    FLEETFIT_ASSIGN(const auto graph, elastic::join(models_, space_.path(design)));
    auto program = Program::prepare(graph, options_);
    if (!program) return program;
    options_.known.insert(program->new_choices().begin(), program->new_choices().end());
    FLEETFIT_TRY(check_ports(*program));
    return program;
  }

  const std::vector<elastic::Supernet>& models_;
  const elastic::SubnetSpace& space_;
  engine::EngineOptions options_;
};

}  // namespace

std::unique_ptr<SubnetPreparer> make_engine_preparer(const std::vector<elastic::Supernet>& models,
                                                     const elastic::SubnetSpace& space,
                                                     engine::EngineOptions options) {
  return std::make_unique<EnginePreparer>(models, space, std::move(options));
}

}  // namespace fleetfit::adapt
