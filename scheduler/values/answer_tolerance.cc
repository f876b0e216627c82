#include "scheduler/values/answer_tolerance.h"

#include <optional>

#include "compiler/dag/matrix_unit_bound.h"
#include "compiler/dag/text.h"
#include "search/space/matrix_product.h"

namespace kiln::scheduler {

v1::Tolerance AnswerTolerance(const v1::Tolerance& asked, std::string_view dag,
                              std::string_view target) {
  v1::Tolerance tolerance = asked;
  const auto named = target::ParseTarget(target);
  if (!named.ok() || !search::HasMatrixUnits(*named)) return tolerance;
  const auto computation = dag::ParseDag(dag);
  if (!computation.ok()) return tolerance;
  const std::optional<dag::ErrorBound> bound = dag::MatrixUnitBound(
      **computation,
      [&](const instructions::MatrixUnit& unit) { return search::HasMatrixUnit(*named, unit); });
  if (!bound) return tolerance;
  if (tolerance.relative() == 0) tolerance.set_relative(bound->relative);
  if (tolerance.absolute() == 0) tolerance.set_absolute(bound->absolute);
  return tolerance;
}

}  // namespace kiln::scheduler
