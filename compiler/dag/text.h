// DAGs as text: what users write, what the database keeps and RPCs carry. docs/text-form.md
// describes it.
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
// What a person writes may say more than what is printed: a reduction inside of an expression
// becomes an operator of its own, extents of reductions that depend on other axes become conditions,
// and names whose values are given when the text is read (`param N`) become numbers.
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

// Refuses syntax errors, two operators of one name, unknown names, a read of what comes later,
// wrong types and numbers of indices, an index that can leave its tensor, an input that nothing
// reads, no operator at all, a range that does not fit its input; extents as in dag.h.
StatusOr<DagPtr> ParseDag(std::string_view text);

// All that a text says.
struct DagText {
  DagPtr dag;
  std::vector<InputRange> ranges;  // in the order of the text
};
// The value of a `param`.
struct ParamValue {
  std::string name;
  int64_t value;
};
// "N=512"
StatusOr<ParamValue> ParseParamValue(std::string_view text);
// Refuses too: params that have no value, all of them at once, and values of what is no param.
StatusOr<DagText> ParseDagText(std::string_view text, std::span<const ParamValue> params = {});

// The name of every operator in text forms: its own, with '1, '2, ... behind it when it is taken.
// Unique; so are the names of the outputs of one that has several.
std::vector<std::string> DisplayNames(const Dag& dag);
// The name of one output: that of the operator, or of one of several NAME.v0, NAME.v1, ..., of
// argmax and argmin NAME.index, NAME.value.
std::string TensorName(const Dag& dag, const std::vector<std::string>& display_names,
                       Tensor tensor);

}  // namespace kiln::dag
