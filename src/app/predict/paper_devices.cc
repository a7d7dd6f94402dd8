#include "fleetfit/app/paper_devices.h"

#include <fmt/format.h>

#include <utility>

#include "fleetfit/measure/device.h"

namespace fleetfit::app {
namespace {

template <class Device>
Status write(const Result<Device>& device, const std::filesystem::path& output) {
  FLEETFIT_TRY(device);
  return predict::write_kernel_predictor(output, *device);
}

}  // namespace

Status write_paper_device(const PaperDeviceRequest& request) {
  if (request.name.empty()) return fail(ErrorCode::invalid_input, "the device needs a name");
  FLEETFIT_TRY(measure::parse_precision(request.precision));
  FLEETFIT_TRY(cost::KernelRules::named(request.rules));
  const predict::Identity identity{.device = request.name,
                                   .runtime = "on paper",
                                   .precision = request.precision,
                                   .rules = request.rules,
                                   .method = "specification"};
  if (const auto* roofline = std::get_if<predict::RooflineSpecification>(&request.specification))
    return write(predict::RooflineDevice::build(identity, *roofline), request.output);
  const auto& accelerator = std::get<predict::AcceleratorSpecification>(request.specification);
  return write(predict::TiledAccelerator::build(identity, accelerator), request.output);
}

Result<predict::AcceleratorSpecification> find_accelerator(const std::string& name) {
  const auto known = predict::zcu102_accelerators();
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (name == fmt::format("zcu102-{}", i + 1)) return known[i];
  }
  return fail(
      ErrorCode::not_found,
      fmt::format("no accelerator '{}'; there are zcu102-1 to zcu102-{}", name, known.size()));
}

}  // namespace fleetfit::app
