// Lines of a CUDA kernel, and the loops and conditions around them. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/quotients.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/types.h"

namespace kiln::codegen {

// Text that grows line by line. What is emitted by `body` stands inside: indented, and knowing the
// variable or the condition that holds there. Where a variable is bound, the quotients of it that
// are worth it get their names (quotients.h).
//
// References are kept. One thread.
class CudaBlocks {
 public:
  CudaBlocks(CudaScope& scope, QuotientNames& quotients, CudaExprs& exprs, CudaNames& names)
      : scope_(scope), quotients_(quotients), exprs_(exprs), names_(names) {}

  // Moves the text out; the next line begins another one.
  std::string Take() { return std::exchange(text_, {}); }

  void Line(std::string_view text);
  const std::string& name(int32_t var) const { return scope_.name(var); }

  // opening, which ends with a brace, the body, and the brace that closes it.
  template <typename Body>
  void Braced(std::string_view opening, Body&& body);

  // for (int name = 0; ...). copies: as in UnrollPlan; 0 leaves it to the compiler.
  template <typename Body>
  void Loop(int32_t var, int64_t extent, int64_t copies, Body&& body);

  // The variable is bound by its definition, a line: no loop.
  template <typename Body>
  void Bound(int32_t var, std::string_view definition, Body&& body);

  // if (condition), of the program. The body alone where the condition always holds; nothing where
  // it never does.
  template <typename Body>
  void Where(ir::Expr condition, Body&& body);

  // if (condition), of the scope, whatever it is.
  template <typename Body>
  void If(ir::Expr condition, Body&& body);
  // The same with an else.
  template <typename Body, typename Rest>
  void IfElse(ir::Expr condition, Body&& body, Rest&& rest);

 private:
  // All of the block but the brace that closes it.
  template <typename Body>
  void OpenIf(ir::Expr condition, Body&& body);
  void NameQuotients(int32_t var);

  CudaScope& scope_;
  QuotientNames& quotients_;
  CudaExprs& exprs_;
  CudaNames& names_;
  std::string text_;
  int indent_ = 1;
};

// ---- implementation of templates

template <typename Body>
void CudaBlocks::Braced(std::string_view opening, Body&& body) {
  Line(opening);
  ++indent_;
  body();
  --indent_;
  Line("}");
}

template <typename Body>
void CudaBlocks::Loop(int32_t var, int64_t extent, int64_t copies, Body&& body) {
  const std::string& name = scope_.name(var);
  if (copies == extent) Line("#pragma unroll");
  if (copies > 0 && copies < extent) Line(fmt::format("#pragma unroll {}", copies));
  const std::string opening =
      fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", IndexTypeName(extent), name, extent);
  Braced(opening, [&] {
    quotients_.Enter(var, /*is_loop=*/true);
    NameQuotients(var);
    body();
    quotients_.Leave(/*is_loop=*/true);
  });
}

template <typename Body>
void CudaBlocks::Bound(int32_t var, std::string_view definition, Body&& body) {
  Line(definition);
  quotients_.Enter(var, /*is_loop=*/false);
  NameQuotients(var);
  body();
  quotients_.Leave(/*is_loop=*/false);
}

template <typename Body>
void CudaBlocks::Where(ir::Expr condition, Body&& body) {
  const ir::Expr simplified = exprs_.SimplifyCondition(condition);
  if (!simplified->is_const_int()) return If(simplified, body);
  if (simplified->int_value != 0) body();
}

template <typename Body>
void CudaBlocks::If(ir::Expr condition, Body&& body) {
  OpenIf(condition, body);
  Line("}");
}

template <typename Body, typename Rest>
void CudaBlocks::IfElse(ir::Expr condition, Body&& body, Rest&& rest) {
  OpenIf(condition, body);
  Braced("} else {", rest);
}

template <typename Body>
void CudaBlocks::OpenIf(ir::Expr condition, Body&& body) {
  Line(fmt::format("if ({}) {{", exprs_.PrintSimplified(condition).text));
  ++indent_;
  {
    const arith::FactScope facts(scope_.simplifier(), condition);
    body();
  }
  --indent_;
}

}  // namespace kiln::codegen
