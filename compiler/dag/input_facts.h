// What the random values of a computation's inputs depend on when programs are checked. A program,
// its reference and a sample of its outputs are compared on equal inputs, so all that is made of a
// computation has the same facts.
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
  std::string name;  // in the text form
  ir::Type type;
  std::vector<int64_t> shape;
  int64_t index_limit = 0;               // as IndexLimits says; 0: it is no index
  std::optional<InputRange> range = {};  // none: the usual values
  bool operator==(const InputFacts&) const = default;
};

// As Dag::arguments() lists them. Pure; linear in the accesses.
std::vector<InputFacts> InputsOf(const DagText& text);

// "float32[8, 4] x with values in [0.5, 2)"
std::string PrintInputFacts(const InputFacts& input);

// Internal, with the first difference: `made` was made of `whole`, and would be given other inputs.
Status CheckSameInputs(const DagText& whole, const DagText& made);

}  // namespace kiln::dag
