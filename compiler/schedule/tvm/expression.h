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
  // True: variables have types of their own, as those of a combiner. False: they are indices.
  bool vars_are_values = false;
};

// Returns an expression of `te` and `tir`. Index arithmetic is TVM's, in int32. A body that is
// nothing but an index gets a type.
std::string TvmExpression(ir::Expr e, const PythonNames& names);

// Returns an expression of `np`, and of functions that the program has (program.cc): `at(x, i, j)`
// for a load that a condition guards, `erf`, `sigmoid`. Variables are arrays of indices.
std::string NumpyExpression(ir::Expr e, const PythonNames& names);

// Replaces characters that no Python name may have by "_".
std::string PythonName(std::string_view name);

// Returns a text as a literal.
std::string PythonText(std::string_view text);

}  // namespace kiln::schedule
