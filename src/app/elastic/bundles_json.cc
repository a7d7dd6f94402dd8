#include <nlohmann/json.hpp>

#include "fleetfit/app/bundles.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

template <class T, class ToJson>
Json list_json(const std::vector<T>& items, ToJson to) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to(item));
  return list;
}

Json branch_json(const BranchSummary& branch) {
  return {{"branch", branch.code},
          {"kind", elastic::to_string(branch.kind)},
          {"span", branch.span},
          {"share", branch.share},
          {"macs", branch.macs},
          {"params", branch.params},
          {"weight_bytes", branch.weight_bytes}};
}

Json block_json(const BlockSummary& block) {
  return {{"name", block.name},
          {"input", block.input},
          {"output", block.output},
          {"branches", list_json(block.branches, branch_json)}};
}

Json model_json(const ElasticModelSummary& model) {
  return {{"name", model.name},
          {"macs", model.macs},
          {"params", model.params},
          {"blocks", list_json(model.blocks, block_json)}};
}

}  // namespace

Json to_json(const BundleSummary& summary) {
  const auto& info = summary.info;
  return {{"file", summary.file},
          {"version", summary.check.version},
          {"bytes", summary.check.bytes},
          {"model_bytes", info.model_bytes},
          {"signature", summary.check.signature},
          {"manifest_sha256", summary.manifest_sha256},
          {"created_by", info.created_by},
          {"created", info.created},
          {"data", info.data},
          {"classes", info.classes},
          {"subnets", summary.subnets_approximate},
          {"subnets_exact", summary.subnets},
          {"original", summary.original},
          {"models", list_json(summary.models, model_json)},
          {"samples", core::to_json(info.samples)}};
}

Json to_json(const VerifiedBundle& bundle) {
  return {{"file", bundle.file},
          {"version", bundle.check.version},
          {"bytes", bundle.check.bytes},
          {"signature", bundle.check.signature},
          {"sections", core::to_json(bundle.check.sections)}};
}

Json to_json(const WrittenSubnet& subnet) {
  return {{"subnet", subnet.subnet},
          {"file", subnet.file},
          {"bytes", subnet.bytes},
          {"macs", subnet.macs},
          {"params", subnet.params}};
}

Json to_json(const WrittenBundle& bundle) {
  return {{"file", bundle.file},
          {"bundle_bytes", bundle.bytes},
          {"models", bundle.models},
          {"blocks", bundle.blocks},
          {"branches", bundle.branches},
          {"subnets", bundle.subnets_approximate},
          {"subnets_exact", bundle.subnets}};
}

}  // namespace fleetfit::app
