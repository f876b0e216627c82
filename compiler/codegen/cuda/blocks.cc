#include "compiler/codegen/cuda/blocks.h"

namespace kiln::codegen {
using ir::Expr;
using ir::Op;

void CudaBlocks::Line(std::string_view text) {
  text_.append(static_cast<size_t>(2 * indent_), ' ');
  text_ += text;
  text_ += '\n';
}

// i_div_7 for i / 7; a quotient of a quotient that has a name is called after that.
void CudaBlocks::NameQuotients(int32_t var) {
  for (Expr e : quotients_.ToName(var)) {
    const CudaText text = exprs_.PrintDivision(e);
    const QuotientNames::Name* dividend = quotients_.NameOrNull(e->arg(0));
    const std::string& base = dividend != nullptr ? dividend->text : scope_.name(var);
    const std::string divisor =
        e->arg(1)->is_const_int() ? fmt::format("_{}", e->arg(1)->int_value) : "";
    const std::string name = names_.Unique(
        fmt::format("{}_{}{}", base, e->op == Op::kFloorDiv ? "div" : "mod", divisor));
    Line(fmt::format("const {} {} = {};", text.is_long ? "long long" : "int", name, text.text));
    quotients_.SetName(e, {name, text.is_long});
  }
}

}  // namespace kiln::codegen
