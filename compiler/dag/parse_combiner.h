// Combiners that are written in the text form of a computation (docs/text-form.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "compiler/dag/reduction.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/lexer.h"

namespace kiln::dag {

struct WrittenCombiner {
  // Token of the name.
  ir::Token token;
  // Name as it is written.
  std::string name;
  CustomCombinerPtr combiner;
};

// Parses `combine NAME(a: TYPE, ...; b, ...) from VALUE = value`, or several values in brackets.
// Refuses words of the language, and combiners that CheckCustomCombiner refuses. The expressions
// belong to `pool`. `constant` returns the value of a name that has one in this text, and null for
// other names.
StatusOr<WrittenCombiner> ParseWrittenCombiner(
    ir::TokenStream& tokens, const std::shared_ptr<ir::ExprPool>& pool,
    absl::FunctionRef<ir::Expr(std::string_view name)> constant);

}  // namespace kiln::dag
