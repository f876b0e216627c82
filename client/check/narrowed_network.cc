#include "client/check/narrowed_network.h"

#include "client/check/reference_programs.h"
#include "graph/evaluate.h"

namespace kiln::client {

StatusOr<std::vector<Verdict>> CompareWithWide(const graph::Graph& narrow, const graph::Graph& wide,
                                               std::span<const ir::NDArray> inputs) {
  KILN_ASSIGN_OR_RETURN(ReferencePrograms programs, ReferencePrograms::Make());
  const auto evaluate = [&](const dag::DagPtr& dag, std::span<const ir::NDArray> arguments) {
    return programs.Evaluate(dag, arguments);
  };
  KILN_ASSIGN_OR_RETURN(const auto want, graph::Evaluate(wide, inputs, evaluate));
  KILN_ASSIGN_OR_RETURN(const auto got, graph::Evaluate(narrow, inputs, evaluate));
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < want.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(verdicts.emplace_back(), JudgeOutput(wide.value(wide.outputs()[i]).name,
                                                               got[i], want[i], {}, nullptr));
  }
  return verdicts;
}

}  // namespace kiln::client
