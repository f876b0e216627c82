// For tests of operators: one node, evaluated or written as a DAG, and arrays to compare with.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "graph/tensor_type.h"

namespace kiln::graph {

// The outputs of `call`, an operator of inputs called a, b, c, ... with attributes behind it:
// RunOp("clip(a) {min: 0}", {x}). Refuses what the text form does.
StatusOr<std::vector<ir::NDArray>> TryOp(std::string_view call,
                                         const std::vector<ir::NDArray>& inputs,
                                         int num_outputs = 1);
// Of one output; must be fine.
ir::NDArray RunOp(std::string_view call, const std::vector<ir::NDArray>& inputs);

// What the refusal says; "" when there is none.
std::string RefusalOf(std::string_view call, const std::vector<ir::NDArray>& inputs);
// What its node computes. Must be fine.
dag::DagPtr DagOf(std::string_view call, const std::vector<TensorType>& inputs);

std::vector<double> Doubles(const ir::NDArray& array);
ir::NDArray Array(ir::Type type, std::vector<int64_t> shape, std::vector<double> values);
// Whole numbers from -3 to 3.
ir::NDArray SmallIntegers(std::vector<int64_t> shape, uint64_t seed, ir::Type type = ir::kFloat32);

using Index = std::vector<int64_t>;
// Of an element that is there.
double ElementAt(const ir::NDArray& array, const Index& index);
// In row-major order.
void ForEachIndex(const std::vector<int64_t>& shape, const std::function<void(const Index&)>& f);
// The array whose elements f gives.
ir::NDArray ArrayOf(ir::Type type, std::vector<int64_t> shape,
                    const std::function<double(const Index&)>& f);
// Axis i of the result is axis order[i] of the array.
ir::NDArray Permuted(const ir::NDArray& array, const std::vector<size_t>& order);

}  // namespace kiln::graph
