#include "compiler/ir/evaluate.h"

#include <bit>
#include <cmath>
#include <unordered_map>

#include "compiler/ir/integer_ops.h"
#include "compiler/ir/traverse.h"

namespace kiln::ir {

// Instructions of a stack machine. The binary codes stand in the order of Op, so that a code is
// found by an addition.
enum class CompiledExpr::Code : uint8_t {
  kEnd,
  kConst,
  kVar,
  // Operators on ints.
  kAddI,
  kSubI,
  kMulI,
  kDivI,
  kFloorDivI,
  kFloorModI,
  kMinI,
  kMaxI,
  kEqI,
  kNeI,
  kLtI,
  kLeI,
  kGtI,
  kGeI,
  // Operators on bits, also in the order of Op.
  kBitAndI,
  kBitOrI,
  kBitXorI,
  kShlI,
  kShrI,
  // Operators on floats.
  kAddF,
  kSubF,
  kMulF,
  kDivF,
  kFloorDivF,
  kFloorModF,
  kMinF,
  kMaxF,
  kEqF,
  kNeF,
  kLtF,
  kLeF,
  kGtF,
  kGeF,
  kNot,
  kSelect,
  // `number` holds the bits and the code of the type that is converted.
  kCast,
  // `number` is the same as for kCast.
  kReinterpret,
  kLoad,
  kCall,
  kAbsI,
  kJump,
  // Pops the condition.
  kJumpIfFalse,
  // The operator &&.
  kJumpIfFalseOrPop,
  // The operator ||.
  kJumpIfTrueOrPop,
  // Pushes the shared node `number`. The subroutine at `extra` computes it first if this run has
  // not yet.
  kShared,
  // Ends the computation of the shared node `number`.
  kReturn,
};

namespace {

int32_t PackType(Type type) { return static_cast<int32_t>(type.code) << 8 | type.bits; }
Type UnpackType(int32_t packed) {
  return {static_cast<TypeCode>(packed >> 8), static_cast<uint8_t>(packed)};
}

double CallFloat(Intrinsic intrinsic, double x, double y) {
  switch (intrinsic) {
    case Intrinsic::kExp:
      return std::exp(x);
    case Intrinsic::kLog:
      return std::log(x);
    case Intrinsic::kSqrt:
      return std::sqrt(x);
    case Intrinsic::kRsqrt:
      return 1.0 / std::sqrt(x);
    case Intrinsic::kTanh:
      return std::tanh(x);
    case Intrinsic::kSigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case Intrinsic::kErf:
      return std::erf(x);
    case Intrinsic::kPow:
      return std::pow(x, y);
    case Intrinsic::kAbs:
      return std::abs(x);
    case Intrinsic::kFloor:
      return std::floor(x);
    case Intrinsic::kCeil:
      return std::ceil(x);
    case Intrinsic::kRound:
      return std::nearbyint(x);
    case Intrinsic::kSin:
      return std::sin(x);
    case Intrinsic::kCos:
      return std::cos(x);
    case Intrinsic::kExp2:
      return std::exp2(x);
    case Intrinsic::kLog2:
      return std::log2(x);
  }
  return x;
}

double FloorModFloat(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// The sum is NaN if an operand is NaN, and +0 if the operands are zeros of different signs.
double Maximum(double a, double b) {
  if (a > b) return a;
  if (b > a) return b;
  return a == b && a != 0 ? a : a + b;
}

double Minimum(double a, double b) { return -Maximum(-a, -b); }

// Rounds to float32 unless the type has 64 bits: shorter floats are carried in float32.
double Carry(double value, Type type) {
  return type.bits == 64 ? value : static_cast<double>(static_cast<float>(value));
}

uint64_t Unsigned(Value v) { return static_cast<uint64_t>(v.i); }

// Returns the mask for comparisons: values xor this mask, compared as int64, are in the order of
// their type.
int64_t FlipOf(Type type) { return type == kUInt64 ? INT64_MIN : 0; }

}  // namespace

class CompiledExpr::Compiler {
 public:
  explicit Compiler(CompiledExpr& out) : out_(out) {}

  void Compile(Expr root) {
    CountUses(root);
    out_.code_.reserve(uses_.size() + 1);
    Emit(root);
    Add(Code::kEnd, kIndex, 0, 0, 0);
    EmitSharedNodes();
    out_.stack_.resize(static_cast<size_t>(max_depth_ + shared_depth_));
    out_.returns_.resize(out_.shared_.size());
  }

 private:
  static bool IsLeaf(Expr e) { return e->num_args == 0 && e->op != Op::kLoad; }

  void CountUses(Expr root) {
    int nodes = 0;
    Visit(root, [&](Expr e) {
      ++nodes;
      if (e->op == Op::kVar && e->id >= out_.num_vars_) out_.num_vars_ = e->id + 1;
      if (e->op == Op::kLoad) out_.has_load_ = true;
      for (Expr a : e->args()) {
        if (!IsLeaf(a)) ++uses_[a];
      }
    });
  }

  // `change` is the change of the stack depth.
  void Add(Code code, Type type, int32_t number, int32_t extra, int change) {
    out_.code_.push_back({code, type, number, extra});
    depth_ += change;
    if (depth_ > max_depth_) max_depth_ = depth_;
  }

  int32_t Here() const { return static_cast<int32_t>(out_.code_.size()); }
  void PatchJump(int32_t at) { out_.code_[static_cast<size_t>(at)].number = Here(); }

  // A node that is used twice becomes a subroutine, which runs at most once in a run. Its code
  // comes after the main code.
  void Emit(Expr e) {
    if (e->num_args > 0) {
      auto it = uses_.find(e);
      if (it != uses_.end() && it->second > 1) {
        auto [known, is_new] = numbers_.try_emplace(e, static_cast<int32_t>(out_.shared_.size()));
        if (is_new) {
          out_.shared_.emplace_back();
          pending_.push_back(e);
        }
        Add(Code::kShared, e->type, known->second, 0, 1);
        return;
      }
    }
    EmitNode(e);
  }

  void EmitSharedNodes() {
    std::vector<int32_t> entries;
    // A run needs at most the sum of the depths of nested subroutines. The sum over all subroutines
    // is an upper bound of it.
    const int main_depth = max_depth_;
    // EmitNode may append to pending_.
    for (size_t i = 0; i < pending_.size(); ++i) {
      depth_ = max_depth_ = 0;
      entries.push_back(Here());
      EmitNode(pending_[i]);
      Add(Code::kReturn, kIndex, static_cast<int32_t>(i), 0, 0);
      shared_depth_ += max_depth_;
    }
    max_depth_ = main_depth;
    for (Instruction& instruction : out_.code_) {
      if (instruction.code == Code::kShared) {
        instruction.extra = entries[static_cast<size_t>(instruction.number)];
      }
    }
  }

  void EmitConst(Value value) {
    Add(Code::kConst, kIndex, static_cast<int32_t>(out_.constants_.size()), 0, 1);
    out_.constants_.push_back(value);
  }

  void EmitNode(Expr e) {
    switch (e->op) {
      case Op::kInt:
        return EmitConst(Value::Int(e->int_value));
      case Op::kFloat:
        return EmitConst(Value::Float(e->float_value));
      case Op::kVar:
        return Add(Code::kVar, e->type, e->id, 0, 1);
      case Op::kAnd:
        return EmitLogic(e, Code::kJumpIfFalseOrPop);
      case Op::kOr:
        return EmitLogic(e, Code::kJumpIfTrueOrPop);
      case Op::kIf:
        return EmitIf(e);
      default:
        break;
    }
    for (Expr a : e->args()) Emit(a);
    const int n = e->num_args;
    switch (e->op) {
      case Op::kNot:
        return Add(Code::kNot, kBool, 0, 0, 0);
      case Op::kSelect:
        return Add(Code::kSelect, e->type, 0, 0, -2);
      case Op::kCast:
        return Add(Code::kCast, e->type, PackType(e->arg(0)->type), 0, 0);
      case Op::kReinterpret:
        return Add(Code::kReinterpret, e->type, PackType(e->arg(0)->type), 0, 0);
      case Op::kLoad:
        return Add(Code::kLoad, e->type, e->id, n, 1 - n);
      case Op::kCall:
        return Add(e->type.is_float() ? Code::kCall : Code::kAbsI, e->type, e->id, n, 1 - n);
      default:
        break;
    }
    if (IsBits(e->op)) {
      const int bits = static_cast<int>(e->op) - static_cast<int>(Op::kBitAnd);
      return Add(static_cast<Code>(static_cast<int>(Code::kBitAndI) + bits), e->type, 0, 0, -1);
    }
    const Type operands = e->arg(0)->type;
    const Code first = operands.is_float() ? Code::kAddF : Code::kAddI;
    const int offset = static_cast<int>(e->op) - static_cast<int>(Op::kAdd);
    Add(static_cast<Code>(static_cast<int>(first) + offset), operands, 0, 0, -1);
  }

  void EmitLogic(Expr e, Code jump) {
    Emit(e->arg(0));
    const int32_t at = Here();
    Add(jump, kBool, 0, 0, -1);
    Emit(e->arg(1));
    PatchJump(at);
  }

  void EmitIf(Expr e) {
    Emit(e->arg(0));
    const int32_t to_else = Here();
    Add(Code::kJumpIfFalse, kBool, 0, 0, -1);
    Emit(e->arg(1));
    const int32_t to_end = Here();
    Add(Code::kJump, kBool, 0, 0, -1);
    PatchJump(to_else);
    Emit(e->arg(2));
    PatchJump(to_end);
  }

  CompiledExpr& out_;
  std::unordered_map<Expr, int> uses_;
  std::unordered_map<Expr, int32_t> numbers_;
  std::vector<Expr> pending_;
  int depth_ = 0;
  int max_depth_ = 0;
  int shared_depth_ = 0;
};

CompiledExpr::CompiledExpr(Expr e) : type_(e->type) { Compiler(*this).Compile(e); }

Status CompiledExpr::Run(std::span<const Value> vars, LoadSource* loads, Value* result) {
  if (static_cast<size_t>(num_vars_) > vars.size()) {
    return InvalidArgument("variable {} has no value: {} are given", num_vars_ - 1, vars.size());
  }
  if (has_load_ && loads == nullptr) {
    return InvalidArgument("the expression loads, and there is nothing to load from");
  }
  ++run_;
  return Execute(vars.data(), loads, result);
}

// One long switch on purpose: it is the whole machine.
Status CompiledExpr::Execute(const Value* vars, LoadSource* loads, Value* result) {
  Value* top = stack_.data() - 1;
  int32_t* returns = returns_.data();
  const Instruction* code = code_.data();
  for (const Instruction* at = code;; ++at) {
    const Type type = at->type;
    switch (at->code) {
      case Code::kEnd:
        *result = *top;
        return OkStatus();
      case Code::kConst:
        *++top = constants_[static_cast<size_t>(at->number)];
        break;
      case Code::kVar:
        *++top = vars[at->number];
        break;

#define KILN_INT(name, expression)                              \
  case Code::name: {                                            \
    const Value b = *top--, a = *top;                           \
    const auto value = static_cast<int64_t>(expression);        \
    top->i = type.bits == 64 ? value : WrapToType(value, type); \
    break;                                                      \
  }
        KILN_INT(kAddI, Unsigned(a) + Unsigned(b))
        KILN_INT(kSubI, Unsigned(a) - Unsigned(b))
        KILN_INT(kMulI, Unsigned(a) * Unsigned(b))
        KILN_INT(kMinI, (a.i ^ FlipOf(type)) < (b.i ^ FlipOf(type)) ? a.i : b.i)
        KILN_INT(kMaxI, (a.i ^ FlipOf(type)) > (b.i ^ FlipOf(type)) ? a.i : b.i)
        KILN_INT(kBitAndI, a.i & b.i)
        KILN_INT(kBitOrI, a.i | b.i)
        KILN_INT(kBitXorI, a.i ^ b.i)
#undef KILN_INT
      case Code::kFloorDivI:
      case Code::kFloorModI: {
        const Value b = *top--, a = *top;
        const bool is_div = at->code == Code::kFloorDivI;
        if (b.i == 0) return InvalidArgument("{} {} 0 has no value", a.i, is_div ? "//" : "%");
        if (type == kUInt64) {
          const uint64_t value = is_div ? Unsigned(a) / Unsigned(b) : Unsigned(a) % Unsigned(b);
          top->i = static_cast<int64_t>(value);
          break;
        }
        const int64_t value = is_div ? FloorDiv(a.i, b.i) : FloorMod(a.i, b.i);
        top->i = WrapToType(value, type);
        break;
      }
      case Code::kShlI:
      case Code::kShrI: {
        const Value b = *top--, a = *top;
        const bool is_left = at->code == Code::kShlI;
        if (b.i < 0 || b.i >= type.bits) {
          return InvalidArgument("{} {} {} has no value: {} has {} bits", a.i,
                                 is_left ? "<<" : ">>", b.i, TypeName(type), type.bits);
        }
        const int64_t right =
            type == kUInt64 ? static_cast<int64_t>(Unsigned(a) >> b.i) : a.i >> b.i;
        top->i = WrapToType(is_left ? static_cast<int64_t>(Unsigned(a) << b.i) : right, type);
        break;
      }
      case Code::kDivI:
        return InvalidArgument("'/' is for floats, use '//' for {}", TypeName(type));

#define KILN_FLOAT(name, expression)  \
  case Code::name: {                  \
    const double b = (top--)->f;      \
    const double a = top->f;          \
    top->f = Carry(expression, type); \
    break;                            \
  }
        KILN_FLOAT(kAddF, a + b)
        KILN_FLOAT(kSubF, a - b)
        KILN_FLOAT(kMulF, a * b)
        KILN_FLOAT(kDivF, a / b)
        KILN_FLOAT(kFloorDivF, std::floor(a / b))
        KILN_FLOAT(kFloorModF, FloorModFloat(a, b))
        KILN_FLOAT(kMinF, Minimum(a, b))
        KILN_FLOAT(kMaxF, Maximum(a, b))
#undef KILN_FLOAT

#define KILN_COMPARE(name, op)             \
  case Code::name##I: {                    \
    const int64_t flip = FlipOf(type);     \
    const int64_t b = (top--)->i;          \
    top->i = (top->i ^ flip) op(b ^ flip); \
    break;                                 \
  }                                        \
  case Code::name##F: {                    \
    const double b = (top--)->f;           \
    top->i = top->f op b;                  \
    break;                                 \
  }
        KILN_COMPARE(kEq, ==)
        KILN_COMPARE(kNe, !=)
        KILN_COMPARE(kLt, <)
        KILN_COMPARE(kLe, <=)
        KILN_COMPARE(kGt, >)
        KILN_COMPARE(kGe, >=)
#undef KILN_COMPARE

      case Code::kNot:
        top->i = !top->i;
        break;
      case Code::kSelect:
        top -= 2;
        *top = top->i ? top[1] : top[2];
        break;
      case Code::kCast:
        *top = CastValue(*top, UnpackType(at->number), type);
        break;
      case Code::kReinterpret:
        *top = ReinterpretValue(*top, UnpackType(at->number), type);
        break;
      case Code::kLoad: {
        const auto n = static_cast<size_t>(at->extra);
        top -= static_cast<ptrdiff_t>(n) - 1;
        Value value;
        KILN_RETURN_IF_ERROR(loads->Load(at->number, {&top->i, n}, &value));
        *top = value;
        break;
      }
      case Code::kCall: {
        const double y = at->extra == 2 ? (top--)->f : 0;
        top->f = Carry(CallFloat(static_cast<Intrinsic>(at->number), top->f, y), type);
        break;
      }
      case Code::kAbsI:
        if (top->i < 0) top->i = WrapToType(static_cast<int64_t>(-Unsigned(*top)), type);
        break;
      case Code::kJump:
        at = code + at->number - 1;
        break;
      case Code::kJumpIfFalse:
        if (!(top--)->i) at = code + at->number - 1;
        break;
      case Code::kJumpIfFalseOrPop:
        if (!top->i) {
          at = code + at->number - 1;
        } else {
          --top;
        }
        break;
      case Code::kJumpIfTrueOrPop:
        if (top->i) {
          at = code + at->number - 1;
        } else {
          --top;
        }
        break;
      case Code::kShared: {
        const Shared& shared = shared_[static_cast<size_t>(at->number)];
        if (shared.computed_in_run == run_) {
          *++top = shared.value;
          break;
        }
        *returns++ = static_cast<int32_t>(at - code);
        at = code + at->extra - 1;
        break;
      }
      case Code::kReturn:
        shared_[static_cast<size_t>(at->number)] = {run_, *top};
        at = code + *--returns;
        break;
    }
  }
}

StatusOr<Value> EvaluateExpr(Expr e, std::span<const Value> vars, LoadSource* loads) {
  Value result;
  KILN_RETURN_IF_ERROR(CompiledExpr(e).Run(vars, loads, &result));
  return result;
}

}  // namespace kiln::ir
