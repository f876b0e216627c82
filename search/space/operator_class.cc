#include "search/space/operator_class.h"

#include <utility>

namespace kiln::search {
namespace {

// Terms, and whether they are summed.
std::pair<double, bool> WorkOf(const dag::Operator& op) {
  if (op.is_placeholder()) return {-1, false};
  return {static_cast<double>(op.num_elements()) * static_cast<double>(op.reduce_size()),
          op.is_reduction()};
}

}  // namespace

std::string_view OperatorClassName(OperatorClass kind) {
  switch (kind) {
    case OperatorClass::kPlaceholder:
      return "placeholder";
    case OperatorClass::kComplexReduction:
      return "complex reduction";
    case OperatorClass::kSimpleReduction:
      return "simple reduction";
    case OperatorClass::kDirectCompute:
      return "direct compute";
    case OperatorClass::kLocationTunable:
      return "location-tunable";
  }
  return "";
}

OperatorClass ClassOf(const dag::Dag& dag, const dag::AccessAnalysis& analysis, int i) {
  const dag::Operator& op = dag.op(i);
  if (op.is_placeholder()) return OperatorClass::kPlaceholder;
  if (op.is_reduction()) {
    return analysis.needs_multi_level_tiling(i) ? OperatorClass::kComplexReduction
                                                : OperatorClass::kSimpleReduction;
  }
  const bool inlined = analysis.is_strictly_inlineable(i) || analysis.is_output(i);
  return inlined ? OperatorClass::kDirectCompute : OperatorClass::kLocationTunable;
}

OperatorClass ClassOf(const dag::Dag& dag) {
  const dag::AccessAnalysis analysis(dag);
  int most = 0;
  for (int i = 0; i < dag.size(); ++i) {
    if (WorkOf(dag.op(i)) >= WorkOf(dag.op(most))) most = i;
  }
  return ClassOf(dag, analysis, most);
}

}  // namespace kiln::search
