// Helps tests of operators: evaluates one node or writes it as a DAG, and makes arrays to compare
// with.
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

// Returns the outputs of `call`, an operator of inputs called a, b, c, ... followed by its
// attributes: RunOp("clip(a) {min: 0}", {x}). Refuses everything that the text form refuses.
StatusOr<std::vector<ir::NDArray>> TryOp(std::string_view call,
                                         const std::vector<ir::NDArray>& inputs,
                                         int num_outputs = 1);
// Returns the only output; the call must be valid.
ir::NDArray RunOp(std::string_view call, const std::vector<ir::NDArray>& inputs);

// Returns the message of the refusal; "" if the call is valid.
std::string RefusalOf(std::string_view call, const std::vector<ir::NDArray>& inputs);
// Returns the computation of the node. The call must be valid.
dag::DagPtr DagOf(std::string_view call, const std::vector<TensorType>& inputs);

std::vector<double> Doubles(const ir::NDArray& array);
ir::NDArray Array(ir::Type type, std::vector<int64_t> shape, std::vector<double> values);
// Returns whole numbers from -3 to 3.
ir::NDArray SmallIntegers(std::vector<int64_t> shape, uint64_t seed, ir::Type type = ir::kFloat32);

using Index = std::vector<int64_t>;
// Returns the element at an index, which must exist.
double ElementAt(const ir::NDArray& array, const Index& index);
// Visits the indices in row-major order.
void ForEachIndex(const std::vector<int64_t>& shape, const std::function<void(const Index&)>& f);
// Returns an array whose elements f gives.
ir::NDArray ArrayOf(ir::Type type, std::vector<int64_t> shape,
                    const std::function<double(const Index&)>& f);
// Returns the array with axis order[i] as axis i.
ir::NDArray Permuted(const ir::NDArray& array, const std::vector<size_t>& order);

}  // namespace kiln::graph
