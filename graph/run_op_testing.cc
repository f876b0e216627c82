#include "graph/run_op_testing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/evaluate.h"
#include "graph/node_dag.h"
#include "graph/text.h"

namespace kiln::graph {

using ir::NDArray;

namespace {

// Returns a graph of one node over inputs of these types.
StatusOr<Graph> GraphOf(std::string_view call, const std::vector<TensorType>& inputs,
                        int num_outputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    text += fmt::format("input {}: {}\n", static_cast<char>('a' + i), TypeText(inputs[i]));
  std::vector<std::string> outputs;
  for (int i = 0; i < num_outputs; ++i) outputs.push_back(fmt::format("y{}", i));
  const std::string names = fmt::format("{}", fmt::join(outputs, ", "));
  return ParseGraph(fmt::format("{}{} = {}\noutput {}\n", text, names, call, names));
}

}  // namespace

StatusOr<std::vector<NDArray>> TryOp(std::string_view call, const std::vector<NDArray>& inputs,
                                     int num_outputs) {
  std::vector<TensorType> types;
  for (const NDArray& input : inputs) types.push_back({input.type(), input.shape()});
  KILN_ASSIGN_OR_RETURN(const Graph graph, GraphOf(call, types, num_outputs));
  KILN_CHECK(Equal(graph, *ParseGraph(PrintGraph(graph))), "{}", PrintGraph(graph));
  return Evaluate(graph, inputs);
}

NDArray RunOp(std::string_view call, const std::vector<NDArray>& inputs) {
  StatusOr<std::vector<NDArray>> results = TryOp(call, inputs);
  KILN_CHECK(results.ok(), "{}: {}", call, std::string(results.status().message()));
  return std::move((*results)[0]);
}

std::string RefusalOf(std::string_view call, const std::vector<NDArray>& inputs) {
  return std::string(TryOp(call, inputs).status().message());
}

dag::DagPtr DagOf(std::string_view call, const std::vector<TensorType>& inputs) {
  StatusOr<Graph> graph = GraphOf(call, inputs, 1);
  KILN_CHECK(graph.ok(), "{}: {}", call, std::string(graph.status().message()));
  const int nodes[] = {0};
  StatusOr<NodeDag> written = MakeNodeDag(*graph, nodes, graph->node(0).outputs);
  KILN_CHECK(written.ok(), "{}: {}", call, std::string(written.status().message()));
  return written->dag;
}

std::vector<double> Doubles(const NDArray& array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.num_elements(); ++i) values.push_back(array.GetDouble(i));
  return values;
}

NDArray Array(ir::Type type, std::vector<int64_t> shape, std::vector<double> values) {
  return NDArray(type, std::move(shape), values);
}

NDArray SmallIntegers(std::vector<int64_t> shape, uint64_t seed, ir::Type type) {
  NDArray array(type, std::move(shape));
  array.FillRandom(seed, ir::RandomKind::kSmallIntegers);
  return array;
}

double ElementAt(const NDArray& array, const Index& index) {
  const int64_t flat = array.Flatten(index);
  KILN_CHECK(flat >= 0, "[{}] of {}", fmt::join(index, ", "), ir::ShapeText(array.shape()));
  return array.GetDouble(flat);
}

void ForEachIndex(const std::vector<int64_t>& shape, const std::function<void(const Index&)>& f) {
  const NDArray box(ir::kBool, shape);
  for (int64_t flat = 0; flat < box.num_elements(); ++flat) f(box.Unflatten(flat));
}

NDArray ArrayOf(ir::Type type, std::vector<int64_t> shape,
                const std::function<double(const Index&)>& f) {
  NDArray array(type, std::move(shape));
  for (int64_t flat = 0; flat < array.num_elements(); ++flat)
    array.SetDouble(flat, f(array.Unflatten(flat)));
  return array;
}

NDArray Permuted(const NDArray& array, const std::vector<size_t>& order) {
  std::vector<int64_t> shape;
  for (size_t axis : order) shape.push_back(array.shape()[axis]);
  return ArrayOf(array.type(), shape, [&](const Index& index) {
    Index at(order.size());
    for (size_t i = 0; i < order.size(); ++i) at[order[i]] = index[i];
    return ElementAt(array, at);
  });
}

}  // namespace kiln::graph
