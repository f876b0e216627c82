#include "graph/run_op_testing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/evaluate.h"
#include "graph/text.h"

namespace kiln::graph {

using ir::NDArray;

StatusOr<std::vector<NDArray>> TryOp(std::string_view call, const std::vector<NDArray>& inputs,
                                     int num_outputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += fmt::format("input {}: {}\n", static_cast<char>('a' + i),
                        TypeText({inputs[i].type(), inputs[i].shape()}));
  }
  std::vector<std::string> outputs;
  for (int i = 0; i < num_outputs; ++i) outputs.push_back(fmt::format("y{}", i));
  const std::string names = fmt::format("{}", fmt::join(outputs, ", "));
  KILN_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(fmt::format("{}{} = {}\noutput {}\n", text,
                                                                  names, call, names)));
  KILN_CHECK(Equal(graph, *ParseGraph(PrintGraph(graph))), "{}", PrintGraph(graph));
  return Evaluate(graph, inputs);
}

NDArray RunOp(std::string_view call, const std::vector<NDArray>& inputs) {
  StatusOr<std::vector<NDArray>> results = TryOp(call, inputs);
  KILN_CHECK(results.ok(), "{}: {}", call, std::string(results.status().message()));
  return std::move((*results)[0]);
}

std::vector<double> Doubles(const NDArray& array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.num_elements(); ++i) values.push_back(array.GetDouble(i));
  return values;
}

}  // namespace kiln::graph
