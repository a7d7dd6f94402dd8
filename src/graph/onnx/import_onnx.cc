#include "graph/onnx/import_onnx.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "fleetfit/graph/shape_inference.h"
#include "graph/onnx/onnx_constants.h"
#include "graph/onnx/onnx_node.h"
#include "graph/open_dimensions.h"

namespace fleetfit::graph {
namespace onnx_format {
namespace {

bool is_constant_node(const NodeMessage& node) {
  return node.type == "Constant" && node.domain.empty();
}

bool is_standard(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

/// A tensor out of one of the attributes in which a Constant node may keep its value; nothing if it
/// is none of ours.
Result<std::optional<Tensor>> constant_value(const NodeMessage& node, ConstantReader& constants) {
  for (const auto& attribute : node.attributes) {
    if (attribute.name == "value" && attribute.t) {
      FLEETFIT_ASSIGN(auto tensor, constants.read(*attribute.t));
      return std::optional<Tensor>(std::move(tensor));
    }
    const auto make = [](DType dtype, Shape shape, TensorData data) {
      return std::optional<Tensor>(
          Tensor{.dtype = dtype, .shape = std::move(shape), .data = std::move(data)});
    };
    const auto length = [](const auto& list) {
      return Shape{static_cast<std::int64_t>(list.size())};
    };
    if (attribute.name == "value_float" && attribute.f)
      return make(DType::f32, {}, TensorData::copy(std::vector<float>{*attribute.f}));
    if (attribute.name == "value_int" && attribute.i)
      return make(DType::i64, {}, TensorData::copy(Ints{*attribute.i}));
    if (attribute.name == "value_floats")
      return make(DType::f32, length(attribute.floats), TensorData::copy(attribute.floats));
    if (attribute.name == "value_ints")
      return make(DType::i64, length(attribute.ints), TensorData::copy(attribute.ints));
  }
  return std::optional<Tensor>();
}

std::map<std::string, Attribute> plain_attributes(const NodeMessage& node) {
  std::map<std::string, Attribute> attributes;
  for (const auto& a : node.attributes) {
    auto& value = attributes[std::string(a.name)];
    if (a.i) value = *a.i;
    if (a.f) value = static_cast<double>(*a.f);
    if (a.s) value = std::string(*a.s);
    if (!a.ints.empty()) value = a.ints;
    if (!a.floats.empty()) value = std::vector<double>(a.floats.begin(), a.floats.end());
    if (!a.strings.empty()) value = std::vector<std::string>(a.strings.begin(), a.strings.end());
    if (a.t) value = std::string("a tensor");
    if (a.has_graph) value = std::string("a graph");
  }
  return attributes;
}

class Importer {
 public:
  Importer(const ModelMessage& model, ConstantReader constants, const ImportOptions& options)
      : file_(*model.graph),
        constants_(std::move(constants)),
        options_(options),
        opset_(model.opset.value_or(1)) {}

  Result<ImportedModel> run() {
    result_.opset = opset_;
    if (file_.has_sparse_initializers)
      return fail(ErrorCode::unsupported, "sparse initializers are not supported");
    result_.format = ModelFormat::onnx;
    graph().name = std::string(file_.name);
    const auto tensors = file_.initializers.size() + file_.inputs.size() + file_.nodes.size();
    graph().nodes.reserve(file_.nodes.size());
    graph().tensors.reserve(tensors);
    ids_.reserve(tensors);
    for (auto step :
         {&Importer::add_initializers, &Importer::add_inputs, &Importer::add_constant_nodes,
          &Importer::add_nodes, &Importer::add_outputs, &Importer::declare_shapes}) {
      FLEETFIT_TRY((this->*step)());
    }
    drop_unused_tensors();
    FLEETFIT_TRY(sort_nodes(graph()));
    FLEETFIT_TRY(validate(graph()));
    FLEETFIT_TRY(infer_shapes(graph()));
    return std::move(result_);
  }

 private:
  Graph& graph() { return result_.graph; }

  Status add_named(Tensor tensor, std::string_view name) {
    tensor.name = std::string(name);
    const auto id = graph().add_tensor(std::move(tensor));
    if (!ids_.emplace(name, id).second)
      return refuse(fmt::format("tensor '{}' is made twice", name));
    return {};
  }

  TensorId id_of(std::string_view name) {
    if (name.empty()) return kNoTensor;
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    const auto id = graph().add_tensor({.name = std::string(name)});
    ids_.emplace(name, id);
    return id;
  }

  Status add_initializers() {
    for (const auto& message : file_.initializers) {
      FLEETFIT_ASSIGN(auto tensor, constants_.read(message));
      FLEETFIT_TRY(add_named(std::move(tensor), message.name));
    }
    return {};
  }

  Status add_inputs() {
    for (const auto& message : file_.inputs) {
      // Old files list initializers among the inputs.
      if (ids_.contains(message.name)) continue;
      if (!message.is_tensor)
        return fail(ErrorCode::unsupported, fmt::format("input '{}' is no tensor", message.name));
      Tensor tensor{.name = std::string(message.name), .dtype = dtype_of(message.data_type)};
      if (message.shape) {
        std::vector<OpenDimension> dimensions;
        for (const auto& d : *message.shape)
          dimensions.push_back({d.value.value_or(0), std::string(d.parameter)});
        FLEETFIT_TRY(close_dimensions(tensor, dimensions, options_, result_.assumed));
      }
      FLEETFIT_TRY(add_named(std::move(tensor), message.name));
      graph().inputs.push_back(ids_.at(message.name));
    }
    return {};
  }

  Status add_constant_nodes() {
    for (const auto& message : file_.nodes) {
      if (!is_constant_node(message)) continue;
      if (message.outputs.size() != 1 || message.outputs[0].empty())
        return refuse("a Constant node without an output");
      FLEETFIT_ASSIGN(auto tensor, constant_value(message, constants_));
      if (!tensor) continue;
      FLEETFIT_TRY(add_named(std::move(*tensor), message.outputs[0]));
    }
    return {};
  }

  Status add_nodes() {
    std::unordered_set<TensorId> made;
    for (const auto& message : file_.nodes) {
      Node node;
      node.name = std::string(
          !message.name.empty() || message.outputs.empty() ? message.name : message.outputs[0]);
      if (message.type.empty())
        return refuse(fmt::format("node {} has no operator type", node.name));
      for (const auto name : message.inputs) node.inputs.push_back(id_of(name));
      for (const auto name : message.outputs) node.outputs.push_back(id_of(name));
      while (!node.inputs.empty() && node.inputs.back() == kNoTensor) node.inputs.pop_back();
      while (!node.outputs.empty() && node.outputs.back() == kNoTensor) node.outputs.pop_back();
      for (const auto id : node.outputs) {
        if (id != kNoTensor && !made.insert(id).second)
          return refuse(fmt::format("tensor '{}' is made twice", graph().tensor(id).name));
      }
      auto op = convert(message, node);
      if (!op)
        return core::within(fmt::format("node {} ({})", node.name, message.type), op.error());
      node.op = std::move(*op);
      if (auto* unknown = std::get_if<Unknown>(&node.op)) {
        unknown->domain = std::string(message.domain);
        unknown->attributes = plain_attributes(message);
      }
      graph().nodes.push_back(std::move(node));
    }
    return {};
  }

  Result<Operator> convert(const NodeMessage& message, Node& node) {
    const auto unknown = [&](std::string reason) {
      return Unknown{.type = std::string(message.type), .reason = std::move(reason)};
    };
    if (!is_standard(message.domain))
      return unknown(fmt::format("operators of domain {} are not known", message.domain));
    if (is_constant_node(message)) {
      if (!node.outputs.empty() && graph().tensor(node.outputs[0]).is_constant()) return Constant{};
      return unknown("a constant that is no dense tensor of numbers");
    }
    for (const auto& attribute : message.attributes) {
      if (attribute.has_graph) return unknown("control flow is not supported");
    }
    NodeReader reader(message, opset_, graph(), node);
    return convert_operator(reader);
  }

  Status add_outputs() {
    for (const auto& message : file_.outputs) {
      const auto found = ids_.find(message.name);
      if (found == ids_.end())
        return refuse(fmt::format("output '{}' is made by nothing", message.name));
      graph().outputs.push_back(found->second);
    }
    return {};
  }

  /// What the file says of tensors that inference cannot tell.
  Status declare_shapes() {
    for (const auto* list : {&file_.values, &file_.outputs}) {
      for (const auto& message : *list) {
        const auto found = ids_.find(message.name);
        if (found == ids_.end() || !message.shape || graph().tensor(found->second).shape) continue;
        Shape shape;
        for (const auto& d : *message.shape) {
          if (d.value && *d.value > 0) shape.push_back(*d.value);
        }
        if (shape.size() != message.shape->size() || !element_count(shape)) continue;
        graph().tensor(found->second).dtype = dtype_of(message.data_type);
        graph().tensor(found->second).shape = std::move(shape);
      }
    }
    return {};
  }

  /// Constants that became attributes, and initializers that nothing reads.
  void drop_unused_tensors() {
    std::vector<TensorId> moved(graph().tensors.size(), kNoTensor);
    std::vector<Tensor> kept;
    const auto keep = [&](TensorId& id) {
      if (id == kNoTensor) return;
      auto& place = moved[static_cast<std::size_t>(id)];
      if (place == kNoTensor) {
        place = static_cast<TensorId>(kept.size());
        kept.push_back(std::move(graph().tensor(id)));
      }
      id = place;
    };
    for (auto& id : graph().inputs) keep(id);
    for (auto& node : graph().nodes) {
      for (auto& id : node.inputs) keep(id);
      for (auto& id : node.outputs) keep(id);
    }
    for (auto& id : graph().outputs) keep(id);
    graph().tensors = std::move(kept);
  }

  const GraphMessage& file_;
  ConstantReader constants_;
  const ImportOptions& options_;
  std::int64_t opset_;
  ImportedModel result_;
  std::unordered_map<std::string_view, TensorId> ids_;
};

}  // namespace

Result<ImportedModel> import(Bytes bytes, std::shared_ptr<const void> owner,
                             const std::optional<std::filesystem::path>& folder,
                             const ImportOptions& options) {
  FLEETFIT_ASSIGN(const auto model, read_model(bytes));
  if (model.opset.value_or(1) < 1)
    return refuse(fmt::format("opset {} does not exist", *model.opset));
  if (model.graph->nodes.empty()) return refuse("the graph has no nodes");
  return Importer(model, ConstantReader(std::move(owner), folder), options).run();
}

}  // namespace onnx_format

Result<ImportedModel> import_onnx(std::span<const std::byte> bytes,
                                  const std::filesystem::path& folder,
                                  const ImportOptions& options) {
  return onnx_format::import(bytes, nullptr, folder, options);
}

Result<ImportedModel> import_embedded_onnx(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner,
                                           const ImportOptions& options) {
  return onnx_format::import(bytes, std::move(owner), std::nullopt, options);
}

}  // namespace fleetfit::graph
