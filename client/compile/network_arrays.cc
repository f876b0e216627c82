#include "client/compile/network_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/numbers/rng.h"
#include "compiler/dag/index_limit.h"
#include "compiler/dag/text.h"

namespace kiln::client {
namespace {

// The values that the elements of an input may have.
struct InputValues {
  // 0: the input is no index.
  int64_t index_limit = 0;
  std::optional<dag::InputRange> range;
};

// Adds the values that one kernel requires of its arguments in `buffer`.
Status AddWishes(const runtime::Network& network, const runtime::NetworkKernel& kernel,
                 int32_t buffer, InputValues& values) {
  KILN_ASSIGN_OR_RETURN(const dag::DagText text, dag::ParseDagText(kernel.computation));
  const std::vector<int64_t> limits = dag::IndexLimits(*text.dag);
  const std::vector<std::string> names = dag::DisplayNames(*text.dag);
  const std::vector<dag::Tensor>& arguments = text.dag->arguments();
  for (size_t i = 0; i < std::min(arguments.size(), kernel.args.size()); ++i) {
    if (runtime::RegionOf(network, kernel.args[i].buffer).root != buffer) continue;
    const auto op = static_cast<size_t>(arguments[i].op);
    const int64_t limit = limits[op];
    if (limit > 0 && (values.index_limit == 0 || limit < values.index_limit))
      values.index_limit = limit;
    const auto range = std::ranges::find(text.ranges, names[op], &dag::InputRange::input);
    if (range != text.ranges.end()) values.range = *range;
  }
  return OkStatus();
}

void FillInRange(const dag::InputRange& range, uint64_t seed, ir::NDArray& array) {
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    if (range.run > 0) {
      array.SetDouble(
          i, range.low +
                 static_cast<double>(i / range.run % static_cast<int64_t>(range.high - range.low)));
      continue;
    }
    const double unit =
        static_cast<double>(SplitSeed(seed, static_cast<uint64_t>(i)) >> 11) * 0x1.0p-53;
    const double value = range.low + unit * (range.high - range.low);
    array.SetDouble(i, array.type().is_float() ? value : std::floor(value));
  }
}

}  // namespace

StatusOr<graph::TensorType> TypeOf(const runtime::NetworkTensor& tensor) {
  KILN_ASSIGN_OR_RETURN(const ir::Type type, ir::ParseType(tensor.dtype));
  return graph::TensorType{type, tensor.shape};
}

StatusOr<std::vector<ir::NDArray>> RandomInputs(const runtime::Network& network, uint64_t seed) {
  std::vector<ir::NDArray> inputs;
  for (const runtime::NetworkTensor& tensor : network.inputs) {
    InputValues values;
    for (const runtime::NetworkKernel& kernel : network.kernels) {
      const bool reads = std::ranges::any_of(kernel.args, [&](const runtime::KernelArgument& arg) {
        return runtime::RegionOf(network, arg.buffer).root == tensor.buffer;
      });
      if (!reads) continue;
      KILN_RETURN_IF_ERROR(Annotate(AddWishes(network, kernel, tensor.buffer, values),
                                    fmt::format("the computation of kernel {}", kernel.name)));
    }
    KILN_ASSIGN_OR_RETURN(const graph::TensorType type, TypeOf(tensor));
    ir::NDArray array(type.type, type.shape);
    const uint64_t own_seed = seed + inputs.size();
    if (values.range) {
      FillInRange(*values.range, own_seed, array);
    } else {
      array.FillRandom(own_seed, ir::RandomKind::kUniform, values.index_limit);
    }
    inputs.push_back(std::move(array));
  }
  return inputs;
}

StatusOr<std::vector<ir::NDArray>> RunArrays(runtime::Executor& executor,
                                             std::span<const ir::NDArray> inputs) {
  std::vector<ir::NDArray> outputs;
  for (const runtime::NetworkTensor& tensor : executor.outputs()) {
    KILN_ASSIGN_OR_RETURN(const graph::TensorType type, TypeOf(tensor));
    outputs.emplace_back(type.type, type.shape);
    outputs.back().Poison();
  }
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const ir::NDArray& array : inputs) in.push_back(array.bytes().data());
  for (ir::NDArray& array : outputs) out.push_back(array.mutable_bytes().data());
  KILN_RETURN_IF_ERROR(executor.Run(in, out));
  return outputs;
}

}  // namespace kiln::client
