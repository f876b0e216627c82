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
  ir::Token token;   // of the name
  std::string name;  // as it is written
  CustomCombinerPtr combiner;
};

// combine NAME(a: TYPE, ...; b, ...) from VALUE = value, or several values in brackets. Refuses
// words of the language, and what CheckCustomCombiner refuses. Its expressions are of `pool`.
// `constant`: of a name that has a value in this text; null for others.
StatusOr<WrittenCombiner> ParseWrittenCombiner(
    ir::TokenStream& tokens, const std::shared_ptr<ir::ExprPool>& pool,
    absl::FunctionRef<ir::Expr(std::string_view name)> constant);

}  // namespace kiln::dag
