// DAGs as text, for users, the database and RPCs. docs/text-form.md describes the form.
//
//   # relu(A @ B + bias)
//   input A: float32[512, 256]
//   input B: float32[256, 128]
//   input bias: float32[128]
//   C[i: 512, j: 128] = sum(k: 256) A[i, k] * B[k, j]
//   D[i: 512, j: 128] = max(C[i, j] + bias[j], 0.0)
//
// `@range(0.5, 2)` before an input is the range of the random values that it gets when programs are
// checked. It is part of the text, not of the DAG (input_range.h).
//
// ParseDag(PrintDag(d)) equals d, for every DAG. Operators that nobody reads are the outputs. The
// parsed DAG is in the order of Dag::MakeOrdered, whatever the order of the file, unless the file
// starts with @keep_order (printed when it is needed).
//
// A person may also write forms that are never printed: a reduction inside of an expression becomes
// an operator of its own, extents of reductions that depend on other axes become conditions, and
// names whose values are given when the text is read (`param N`) become numbers.
//
// Pure functions. Any bytes are fine as input; errors name line and column. Cost: linear in the
// text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/input_range.h"

namespace kiln::dag {

// `ranges` name inputs of the DAG.
std::string PrintDag(const Dag& dag, std::span<const InputRange> ranges = {});

// Refuses syntax errors, two operators of one name, unknown names, a read of a later operator,
// wrong types and numbers of indices, an index that can leave its tensor, an input that nothing
// reads, a text without an operator, and a range that does not fit its input. Extents are limited
// as dag.h says.
StatusOr<DagPtr> ParseDag(std::string_view text);

// The contents of a text.
struct DagText {
  DagPtr dag;
  // In the order of the text.
  std::vector<InputRange> ranges;
};
// The value of a `param`.
struct ParamValue {
  std::string name;
  int64_t value;
};
// Parses "N=512".
StatusOr<ParamValue> ParseParamValue(std::string_view text);
// Also refuses params without a value, all of them at once, and values for names that are no
// params.
StatusOr<DagText> ParseDagText(std::string_view text, std::span<const ParamValue> params = {});

// Returns the unique name of every operator in text forms: its own name, followed by '1, '2, ... if
// that name is taken. The names of the outputs of an operator that has several are unique as well.
std::vector<std::string> DisplayNames(const Dag& dag);
// Returns the name of one output: the operator's name if it has one output, NAME.index and
// NAME.value for argmax and argmin, and else NAME.v0, NAME.v1, ...
std::string TensorName(const Dag& dag, const std::vector<std::string>& display_names,
                       Tensor tensor);

}  // namespace kiln::dag
