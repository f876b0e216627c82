// Bodies of operators as expressions of Python: of TVM's tensor expressions, or of numpy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "compiler/ir/expr.h"

namespace kiln::schedule {

struct PythonNames {
  std::function<std::string(int32_t id)> var;
  std::function<std::string(int32_t slot)> tensor;
  bool vars_are_values = false;  // of types of their own, as those of a combiner; else indices
};

// Of `te` and `tir`. Index arithmetic is TVM's, in int32: a body that is an index and nothing else
// says its type.
std::string TvmExpression(ir::Expr e, const PythonNames& names);

// Of `np`, and of functions that the program has (program.cc): `at(x, i, j)` for a load that a
// condition guards, `erf`, `sigmoid`. Variables are arrays of indices.
std::string NumpyExpression(ir::Expr e, const PythonNames& names);

// A name with "_" for what no name of Python may have.
std::string PythonName(std::string_view name);

// A text as a literal.
std::string PythonText(std::string_view text);

}  // namespace kiln::schedule
