// The facts on which the random values of a computation's inputs depend when programs are checked.
// A program, its reference and a sample of its outputs are compared on equal inputs, so every
// computation that is made of another one must have the same facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "compiler/ir/expr.h"

namespace kiln::dag {

struct InputFacts {
  // Name in the text form.
  std::string name;
  ir::Type type;
  std::vector<int64_t> shape;
  // Limit that IndexLimits returns. 0: the input is no index.
  int64_t index_limit = 0;
  // None: the usual values.
  std::optional<InputRange> range = {};
  bool operator==(const InputFacts&) const = default;
};

// Returns the facts in the order of Dag::arguments(). Pure; linear in the accesses.
std::vector<InputFacts> InputsOf(const DagText& text);

// Returns a text like "float32[8, 4] x with values in [0.5, 2)".
std::string PrintInputFacts(const InputFacts& input);

// Returns Internal with the first difference if `made`, which was made of `whole`, would be given
// other inputs.
Status CheckSameInputs(const DagText& whole, const DagText& made);

}  // namespace kiln::dag
