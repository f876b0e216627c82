#include "compiler/dag/hash_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>
#include <limits>
#include <string_view>
#include <vector>

#include "compiler/ir/scalar.h"
#include "compiler/ir/text.h"

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

std::string_view CallName(ir::Intrinsic intrinsic) {
  switch (intrinsic) {
    case ir::Intrinsic::kAbs:
      return "fabs";
    case ir::Intrinsic::kRound:
      return "nearbyint";
    default:
      return IntrinsicName(intrinsic);
  }
}

class Printer {
 public:
  // `forms` is indexed by operator.
  Printer(const Dag& dag, int op, std::span<const OpForm> forms, std::string& out)
      : dag_(dag), node_(dag.node(op)), form_(forms[op]), forms_(forms), out_(out) {}

  void Line(int output) {
    const Operator& op = *node_.op;
    out_ += NameOf(op, form_);
    out_ += '(';
    for (size_t i = 0; i < op.axes().size(); ++i) {
      if (i > 0) out_ += ", ";
      Axis(i);
    }
    out_ += ')';
    if (op.num_outputs() > 1) Append(".v{}", output);
    Body(op, output);
    out_ += '\n';
  }

  // Prints the body as it was printed before 2021. Returns false if that form is not known.
  bool BodyOf2020() {
    const Operator& op = *node_.op;
    if (op.num_outputs() > 1) return false;
    is_of_2020_ = true;
    out_ += '[';
    if (!form_.body.empty()) {
      out_ += form_.body;
    } else if (op.combiner() == Combiner::kNone) {
      Print(op.body());
    } else if (!ReductionOf2020(op)) {
      return false;
    }
    out_ += ']';
    return true;
  }

 private:
  bool ReductionOf2020(const Operator& op) {
    if (op.type() != ir::kFloat32) return false;
    const bool is_sum = op.combiner() == Combiner::kSum;
    if (!is_sum && op.combiner() != Combiner::kMax && op.combiner() != Combiner::kMin) return false;
    const bool is_max = op.combiner() == Combiner::kMax;
    Append(
        "reduce(combiner=comm_reducer(result=[{}], lhs=[x], rhs=[y], identity_element=[{}]), "
        "source=[",
        is_sum   ? "(x + y)"
        : is_max ? "max(x, y)"
                 : "min(x, y)",
        is_sum   ? "0f"
        : is_max ? "-3.40282e+38f"
                 : "3.40282e+38f");
    Print(op.body());
    out_ += "], init=[], axis=[";
    std::string_view separator;
    for (const auto& axis : op.reduce_axes()) {
      Append("{}iter_var({}, range(min=0, ext={}))", separator, axis.name, axis.extent);
      separator = ", ";
    }
    out_ += "], where=(bool)1, value_index=0)";
    return true;
  }

  template <typename... Args>
  void Append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  static const std::string& NameOf(const Operator& op, const OpForm& form) {
    return form.name.empty() ? op.name() : form.name;
  }

  void Axis(size_t i) {
    if (form_.axes.empty()) {
      out_ += node_.op->axes()[i].name;
    } else {
      Append("{}{}", form_.axes, i);
    }
  }

  void Body(const Operator& op, int output) {
    if (!form_.body.empty()) return Append(" = {}", form_.body);
    if (!op.attrs().hash_body.empty()) return Append(" = {}", op.attrs().hash_body);
    switch (op.combiner()) {
      case Combiner::kNone:
        return Assignment(op.body(output));
      case Combiner::kSum:
        out_ += " += ";
        return Print(op.body());
      case Combiner::kMax:
        out_ += " max= ";
        return Print(op.body());
      case Combiner::kMin:
        out_ += " min= ";
        return Print(op.body());
      case Combiner::kProd:
        out_ += "reduce(x*y)";
        return;
      case Combiner::kArgMax:
        return Arg("argmax", '>');
      case Combiner::kArgMin:
        return Arg("argmin", '<');
      case Combiner::kAny:
        out_ += " |= ";
        return Print(op.body(output));
      case Combiner::kAll:
        out_ += " &= ";
        return Print(op.body(output));
      case Combiner::kCustom:
        return Custom(*op.reduction().custom);
    }
  }

  void Assignment(Expr e) {
    out_ += " = ";
    if (e->op == Op::kCall) return Append("Op(tir.{})", CallName(e->intrinsic()));
    if (e->op == Op::kIf) return Append("Op(tir.if_then_else)");
    Print(e);
  }

  void Arg(std::string_view name, char better) {
    Append(
        " select((({0}_lhs_1 {1} {0}_rhs_1) || (({0}_lhs_1 == {0}_rhs_1) && ({0}_lhs_0 < "
        "{0}_rhs_0))), {0}_lhs_0, "
        "{0}_rhs_0)= (",
        name, better);
    Print(node_.op->body(0));
    out_ += ',';
    Print(node_.op->body(1));
    out_ += ')';
  }

  // TVM's text names only the results. The parameters and the identity are as much a part of the
  // computation.
  void Custom(const CustomCombiner& custom) {
    out_ += " reduce[";
    for (Expr result : custom.results) Append("{};", ir::ExprText(result));
    out_ += " from";
    for (Expr identity : custom.identity) Append(" {}", ir::ExprText(identity));
    out_ += "]= ";
    List("(", node_.op->bodies(), ")");
  }

  void List(std::string_view open, std::span<const Expr> args, std::string_view close) {
    out_ += open;
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) out_ += ", ";
      Print(args[i]);
    }
    out_ += close;
  }

  void Infix(Expr e, std::string_view symbol) {
    out_ += '(';
    Print(e->arg(0));
    out_ += symbol;
    Print(e->arg(1));
    out_ += ')';
  }

  void Int(Expr e) {
    // Constants of the index type and of int32 are printed without their type.
    if (e->type == ir::kIndex || e->type == ir::kInt32) return Append("{}", e->int_value);
    if (e->type == ir::kUInt64) return Append("(uint64){}", static_cast<uint64_t>(e->int_value));
    Append("({}){}", TypeName(e->type), e->int_value);
  }

  void Float(Expr e) {
    // Windows of a maximum were padded with the lowest number.
    const bool is_lowest =
        is_of_2020_ && e->float_value == -std::numeric_limits<double>::infinity();
    Append("{:g}", is_lowest ? -ir::LargestFinite(e->type) : e->float_value);
    if (e->type.bits == 32) out_ += 'f';
    if (e->type.bits == 16) out_ += 'h';
    if (e->type.bits == 8) Append("({})", TypeName(e->type));
  }

  void Load(Expr e) {
    const Tensor input = node_.inputs[e->id];
    const Operator& producer = dag_.op(input.op);
    out_ += NameOf(producer, forms_[input.op]);
    if (producer.num_outputs() > 1) Append(".v{}", input.output);
    List("[", e->args(), "]");
  }

  void Print(Expr e) {
    const Operator& op = *node_.op;
    switch (e->op) {
      case Op::kInt:
        return Int(e);
      case Op::kFloat:
        return Float(e);
      case Op::kVar: {
        const auto i = static_cast<size_t>(e->id);
        if (i < op.axes().size()) return Axis(i);
        out_ += op.reduce_axes()[i - op.axes().size()].name;
        return;
      }
      case Op::kAdd:
        return Infix(e, " + ");
      case Op::kSub:
        return Infix(e, " - ");
      case Op::kMul:
        return Infix(e, "*");
      case Op::kDiv:
        return Infix(e, "/");
      case Op::kFloorDiv:
        return List("floordiv(", e->args(), ")");
      case Op::kFloorMod:
        return List("floormod(", e->args(), ")");
      case Op::kMin:
        return List("min(", e->args(), ")");
      case Op::kMax:
        return List("max(", e->args(), ")");
      case Op::kEq:
        return Infix(e, " == ");
      case Op::kNe:
        return Infix(e, " != ");
      case Op::kLt:
        return Infix(e, " < ");
      case Op::kLe:
        return Infix(e, " <= ");
      case Op::kGt:
        return Infix(e, " > ");
      case Op::kGe:
        return Infix(e, " >= ");
      case Op::kAnd:
        return Infix(e, " && ");
      case Op::kOr:
        return Infix(e, " || ");
      case Op::kBitAnd:
        return List("tir.bitwise_and(", e->args(), ")");
      case Op::kBitOr:
        return List("tir.bitwise_or(", e->args(), ")");
      case Op::kBitXor:
        return List("tir.bitwise_xor(", e->args(), ")");
      case Op::kShl:
        return List("tir.shift_left(", e->args(), ")");
      case Op::kShr:
        return List("tir.shift_right(", e->args(), ")");
      case Op::kNot:
        return List("!", e->args(), "");
      case Op::kSelect:
        return List("select(", e->args(), ")");
      case Op::kIf:
        return List("tir.if_then_else(", e->args(), ")");
      case Op::kCast:
        // Indices are 32 bits wide in old keys, where the conversion to int32 was no cast.
        if (e->type == ir::kInt32 && e->arg(0)->type == ir::kIndex) return Print(e->arg(0));
        return List(fmt::format("{}(", TypeName(e->type)), e->args(), ")");
      case Op::kReinterpret:
        return List(fmt::format("tir.reinterpret(\"{}\", ", TypeName(e->type)), e->args(), ")");
      case Op::kLoad:
        return Load(e);
      case Op::kCall:
        return List(fmt::format("tir.{}(", CallName(e->intrinsic())), e->args(), ")");
    }
  }

  const Dag& dag_;
  const OpNode& node_;
  const OpForm& form_;
  const std::span<const OpForm> forms_;
  std::string& out_;
  bool is_of_2020_ = false;
};

}  // namespace

std::string HashText(const Dag& dag) {
  return HashText(dag, std::vector<OpForm>(static_cast<size_t>(dag.size())));
}

std::string HashText(const Dag& dag, std::span<const OpForm> forms) {
  std::string text;
  for (int i = 0; i < dag.size(); ++i) {
    if (dag.op(i).is_placeholder()) {
      const OpForm& form = forms[static_cast<size_t>(i)];
      text += form.name.empty() ? dag.op(i).name() : form.name;
      text += " = PLACEHOLDER \n";
      continue;
    }
    for (int output = 0; output < dag.op(i).num_outputs(); ++output)
      Printer(dag, i, forms, text).Line(output);
  }
  return text;
}

std::string BodiesText(const Dag& dag, std::span<const OpForm> forms) {
  std::string text;
  for (int i = 0; i < dag.size(); ++i) {
    const Operator& op = dag.op(i);
    if (op.is_placeholder()) {
      text += "placeholder";
    } else if (!Printer(dag, i, forms, text).BodyOf2020()) {
      return "";
    }
    // A Python tuple of one number ends with a comma.
    const std::vector<int64_t>& shape = dag.shape({i, 0});
    text += fmt::format(",({}{}),{};", fmt::join(shape, ", "), shape.size() == 1 ? "," : "",
                        TypeName(op.type()));
  }
  return text;
}

}  // namespace kiln::dag
