#include "client/check/verdict.h"

#include <cmath>

#include "compiler/dag/online_variant.h"
#include "runner/compare.h"

namespace kiln::client {
namespace {

using ir::NDArray;

// Compares outputs like the runners of trials.
StatusOr<Verdict> Compared(const std::string& name, const NDArray& got, const NDArray& want,
                           const v1::Tolerance& tolerance) {
  runner::Argument argument{.name = name, .shape = want.shape()};
  KILN_ASSIGN_OR_RETURN(argument.dtype, runtime::ParseDType(ir::TypeName(want.type())));
  argument.elements = want.num_elements();
  argument.bytes = static_cast<int64_t>(want.bytes().size());
  const runner::Comparison comparison =
      runner::Compare(argument, got.bytes(), want.bytes(), tolerance);
  return Verdict{name, comparison.max_error, comparison.message};
}

bool HasNaN(const NDArray& array) {
  if (!array.type().is_float()) return false;
  for (int64_t i = 0; i < array.num_elements(); ++i)
    if (std::isnan(array.GetDouble(i))) return true;
  return false;
}

}  // namespace

StatusOr<Verdict> JudgeOutput(const std::string& name, const NDArray& got, const NDArray& want,
                              const v1::Tolerance& tolerance,
                              const absl::FunctionRef<StatusOr<NDArray>()>* online) {
  KILN_ASSIGN_OR_RETURN(Verdict verdict, Compared(name, got, want, tolerance));
  if (verdict.problem.empty() || online == nullptr || !HasNaN(want)) return verdict;
  KILN_ASSIGN_OR_RETURN(const NDArray variant, (*online)());
  NDArray expected = want;
  const int64_t taken = dag::TakeVariantOfNaN(got, variant, expected);
  KILN_ASSIGN_OR_RETURN(Verdict again, Compared(name, got, expected, tolerance));
  if (!again.problem.empty()) return verdict;
  again.online = taken;
  return again;
}

}  // namespace kiln::client
