#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/measure/device.h"

namespace fleetfit::measure {

/// What limits operators of a class, and so what their speed is counted in.
enum class Counted : std::uint8_t { operations, bytes };

enum class InInt8 : std::uint8_t {
  computed,  ///< quantized with the ranges that it has on random inputs
  moved,     ///< goes by bytes alone: the same on tensors of 8 bits
  no,        ///< merged into others in quantized networks, or computed with floats there too
};

/// A class of operators, with a small network of typical shapes that has nothing else in it.
struct OperatorClass {
  std::string_view name;
  std::string_view subject;  ///< for people
  Counted counted = Counted::operations;
  InInt8 in_int8 = InInt8::computed;
  engine::Choosing kernels = engine::Choosing::measured;
  graph::TensorId (*build)(graph::NetBuilder& net) = nullptr;  ///< gives the output
};

/// In the order in which they are reported.
std::span<const OperatorClass> operator_classes();

/// Large pointwise convolutions, whose kernels save no arithmetic (as Winograd's do): what they
/// reach is what the machine can compute.
const OperatorClass& peak_work(Precision precision);

/// A class of operators ready to run.
class PreparedWork {
 public:
  static Result<PreparedWork> prepare(const OperatorClass& work, Precision precision, int threads);

  /// Runs once; in 10^9 operations or bytes a second, of the operators of the class alone.
  Result<double> sample();

  /// Operations or bytes of one run, of the operators of the class alone.
  double amount() const { return amount_; }

 private:
  PreparedWork(engine::Program program, std::vector<std::string> nodes, double amount)
      : program_(std::move(program)), nodes_(std::move(nodes)), amount_(amount) {}

  bool is_counted(const engine::StepTime& step) const;

  engine::Program program_;
  std::vector<std::string> nodes_;  // of the class: names in the graph
  double amount_;
};

}  // namespace fleetfit::measure
