// Emitter: expressions.
#include <llvm/IR/Intrinsics.h>

#include "compiler/codegen/llvm/emit.h"
#include "compiler/codegen/llvm/math.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::Intrinsic;
using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

llvm::CmpInst::Predicate Predicate(Op op, ir::Type type) {
  using P = llvm::CmpInst::Predicate;
  const bool is_float = type.is_float(), is_bool = type.is_bool() || type.is_unsigned();
  switch (op) {
    case Op::kEq:
      return is_float ? P::FCMP_OEQ : P::ICMP_EQ;
    case Op::kNe:
      return is_float ? P::FCMP_UNE : P::ICMP_NE;
    case Op::kLt:
      return is_float ? P::FCMP_OLT : is_bool ? P::ICMP_ULT : P::ICMP_SLT;
    case Op::kLe:
      return is_float ? P::FCMP_OLE : is_bool ? P::ICMP_ULE : P::ICMP_SLE;
    case Op::kGt:
      return is_float ? P::FCMP_OGT : is_bool ? P::ICMP_UGT : P::ICMP_SGT;
    case Op::kGe:
      return is_float ? P::FCMP_OGE : is_bool ? P::ICMP_UGE : P::ICMP_SGE;
    default:
      break;
  }
  KILN_CHECK(false, "op {} is no comparison", static_cast<int>(op));
  return P::BAD_ICMP_PREDICATE;
}

bool IsInt32(arith::Interval range) { return arith::RangeOfType(ir::kInt32).Contains(range); }
}  // namespace

bool IsSpeculatable(ir::Expr e) {
  bool speculatable = true;
  ir::Visit(e, [&](Expr node) {
    const bool divides = node->op == Op::kFloorDiv || node->op == Op::kFloorMod;
    if (node->op == Op::kLoad || node->op == Op::kCall ||
        (divides && !node->arg(1)->is_const_int())) {
      speculatable = false;
    }
  });
  return speculatable;
}

llvm::Type* Emitter::LaneType(llvm::Type* scalar) const {
  return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes_->count));
}

Value* Emitter::Splat(Value* v) {
  if (!lanes_ || v->getType()->isVectorTy()) return v;
  return builder_.CreateVectorSplat(static_cast<unsigned>(lanes_->count), v);
}

void Emitter::Unify(Value*& a, Value*& b) {
  if (a->getType()->isVectorTy() == b->getType()->isVectorTy()) return;
  a = Splat(a);
  b = Splat(b);
}

Value* Emitter::And(Value* mask, Value* condition) {
  return mask == nullptr ? condition : builder_.CreateAnd(mask, condition);
}

Value* Emitter::Eval(Expr e) {
  switch (e->op) {
    case Op::kInt:
      if (e->type.is_unsigned())
        return llvm::ConstantInt::get(numbers_.ComputeType(e->type),
                                      static_cast<uint64_t>(e->int_value));
      return llvm::ConstantInt::getSigned(numbers_.ComputeType(e->type), e->int_value);
    case Op::kFloat:
      return llvm::ConstantFP::get(numbers_.ComputeType(e->type), e->float_value);
    case Op::kVar:
      return EvalVar(e);
    case Op::kNot:
      return builder_.CreateNot(Eval(e->arg(0)));
    case Op::kAnd:
    case Op::kOr:
      return EvalLogic(e);
    case Op::kSelect:
      return EvalSelect(e);
    case Op::kIf:
      return EvalIf(e);
    case Op::kCast:
      return EvalCast(e);
    case Op::kReinterpret:
      return numbers_.Reinterpret(e->arg(0)->type, e->type, Eval(e->arg(0)));
    case Op::kLoad:
      return EmitLoad(e->id, e->args());
    case Op::kCall:
      return EvalCall(e);
    default:
      return ir::IsComparison(e->op) ? EvalCompare(e) : EvalBinary(e);
  }
}

Value* Emitter::EvalVar(Expr e) {
  Value* value = values_[static_cast<size_t>(e->id)];
  KILN_CHECK(value != nullptr, "variable '{}' is used outside its loop", var_name(e->id));
  if (lanes_ && e->id == lanes_->var) {
    llvm::Constant* step = llvm::ConstantInt::get(builder_.getInt64Ty(), 1);
    std::vector<llvm::Constant*> lanes;
    for (int l = 0; l < lanes_->count; ++l) {
      lanes.push_back(llvm::ConstantInt::get(step->getType(), static_cast<uint64_t>(l)));
    }
    value = builder_.CreateAdd(Splat(value), llvm::ConstantVector::get(lanes));
  }
  if (e->type == ir::kIndex) return value;
  return builder_.CreateIntCast(value, Like(value, numbers_.ComputeType(e->type)),
                                !e->type.is_unsigned());
}

Value* Emitter::EvalBinary(Expr e) {
  Value* a = Eval(e->arg(0));
  Value* b = Eval(e->arg(1));
  Unify(a, b);
  return Arithmetic(e, a, b);
}

Value* Emitter::Arithmetic(Expr e, Value* a, Value* b) {
  const bool is_float = e->type.is_float(), is_bool = e->type.is_bool();
  switch (e->op) {
    case Op::kAdd:
      if (is_bool) return builder_.CreateOr(a, b);
      return is_float ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
    case Op::kSub:
      if (is_bool) return builder_.CreateXor(a, b);
      return is_float ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b);
    case Op::kMul:
      if (is_bool) return builder_.CreateAnd(a, b);
      return is_float ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b);
    case Op::kDiv:
      return builder_.CreateFDiv(a, b);
    case Op::kFloorDiv:
      return FloorDivide(e, a, b, false);
    case Op::kFloorMod:
      return FloorDivide(e, a, b, true);
    case Op::kBitAnd:
      return builder_.CreateAnd(a, b);
    case Op::kBitOr:
      return builder_.CreateOr(a, b);
    case Op::kBitXor:
      return builder_.CreateXor(a, b);
    case Op::kShl:
      return builder_.CreateShl(a, b);
    case Op::kShr:
      return e->type.is_unsigned() ? builder_.CreateLShr(a, b) : builder_.CreateAShr(a, b);
    case Op::kMin:
    case Op::kMax: {
      if (is_float) {
        return builder_.CreateBinaryIntrinsic(
            e->op == Op::kMin ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, a, b);
      }
      const auto predicate = Predicate(e->op == Op::kMin ? Op::kLt : Op::kGt, e->type);
      return builder_.CreateSelect(builder_.CreateCmp(predicate, a, b), a, b);
    }
    default:
      break;
  }
  KILN_CHECK(false, "op {} is no arithmetic", static_cast<int>(e->op));
  return nullptr;
}

Value* Emitter::FloorDivide(Expr e, Value* a, Value* b, bool remainder) {
  const auto constant = [&](int64_t v) { return llvm::ConstantInt::getSigned(a->getType(), v); };
  const Expr divisor = e->arg(1);
  if (divisor->is_const_int() && divisor->int_value > 0) {
    const int64_t d = divisor->int_value;
    if ((d & (d - 1)) == 0) {
      if (remainder) return builder_.CreateAnd(a, constant(d - 1));
      if (e->type.is_unsigned())
        return builder_.CreateLShr(a, constant(__builtin_ctzll(static_cast<uint64_t>(d))));
      return builder_.CreateAShr(a, constant(__builtin_ctzll(static_cast<uint64_t>(d))));
    }
    if (arith::RangeOf(e->arg(0), ranges_).lo >= 0) {
      return remainder ? builder_.CreateURem(a, b) : builder_.CreateUDiv(a, b);
    }
  }
  if (e->type.is_unsigned()) {
    if (lanes_ && lanes_->mask != nullptr && b->getType()->isVectorTy())
      b = builder_.CreateSelect(lanes_->mask, b, constant(1));
    return remainder ? builder_.CreateURem(a, b) : builder_.CreateUDiv(a, b);
  }
  Value* negate = nullptr;
  if (!divisor->is_const_int() || divisor->int_value == -1) {
    // Lanes that are switched off must not divide by 0, and x / -1 must not trap.
    if (lanes_ && lanes_->mask != nullptr && b->getType()->isVectorTy()) {
      b = builder_.CreateSelect(lanes_->mask, b, constant(1));
    }
    negate = builder_.CreateICmpEQ(b, constant(-1));
    b = builder_.CreateSelect(negate, constant(1), b);
  }
  Value* q = builder_.CreateSDiv(a, b);
  Value* r = builder_.CreateSub(a, builder_.CreateMul(q, b));
  Value* rounds_up =
      builder_.CreateAnd(builder_.CreateICmpNE(r, constant(0)),
                         builder_.CreateICmpSLT(builder_.CreateXor(r, b), constant(0)));
  if (remainder) return builder_.CreateAdd(r, builder_.CreateSelect(rounds_up, b, constant(0)));
  q = builder_.CreateSub(q, builder_.CreateZExt(rounds_up, q->getType()));
  return negate == nullptr ? q : builder_.CreateSelect(negate, builder_.CreateNeg(a), q);
}

Value* Emitter::EvalCompare(Expr e) {
  const ir::Type type = e->arg(0)->type;
  const auto predicate = Predicate(e->op, type);
  if (type == ir::kIndex && Depends(e)) {
    arith::Linear difference = IndexForm(e->arg(0), known_);
    difference.AddScaled(IndexForm(e->arg(1), known_), -1);
    const auto split = lanes_->Split(difference, known_);
    // shared + offset < 0 becomes shared < -offset: one comparison with a constant vector.
    if (split && IsInt32(arith::RangeOf(difference, ranges_)) &&
        IsInt32(arith::RangeOf(split->shared, ranges_))) {
      Value* shared = builder_.CreateTrunc(EmitLinear(split->shared, true), builder_.getInt32Ty());
      std::vector<uint32_t> limits;
      for (int64_t offset : split->offsets) limits.push_back(static_cast<uint32_t>(-offset));
      return builder_.CreateICmp(predicate, Splat(shared),
                                 llvm::ConstantDataVector::get(context_, limits));
    }
    if (FitsNarrow(e->arg(0)) && FitsNarrow(e->arg(1))) {
      Value* a = EvalNarrow(e->arg(0));
      Value* b = EvalNarrow(e->arg(1));
      Unify(a, b);
      return builder_.CreateICmp(predicate, a, b);
    }
  }
  Value* a = Eval(e->arg(0));
  Value* b = Eval(e->arg(1));
  Unify(a, b);
  return builder_.CreateCmp(predicate, a, b);
}

bool Emitter::FitsNarrow(Expr e) const {
  bool fits = true;
  ir::Visit(e, [&](Expr node) {
    switch (node->op) {
      case Op::kInt:
      case Op::kVar:
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kMin:
      case Op::kMax:
        break;
      case Op::kFloorDiv:
      case Op::kFloorMod:
        if (node->arg(1)->is_const_int() && node->arg(1)->int_value > 0) break;
        [[fallthrough]];
      default:
        fits = false;
        return;
    }
    if (node->type != ir::kIndex || !IsInt32(arith::RangeOf(node, ranges_))) fits = false;
  });
  return fits;
}

Value* Emitter::EvalNarrow(Expr e) {
  if (!Depends(e)) return builder_.CreateTrunc(Eval(e), builder_.getInt32Ty());
  if (e->op == Op::kVar) return builder_.CreateTrunc(EvalVar(e), LaneType(builder_.getInt32Ty()));
  Value* a = EvalNarrow(e->arg(0));
  Value* b = EvalNarrow(e->arg(1));
  Unify(a, b);
  return Arithmetic(e, a, b);
}

Value* Emitter::EvalLogic(Expr e) {
  const bool is_and = e->op == Op::kAnd;
  Value* a = Eval(e->arg(0));
  if (IsSpeculatable(e->arg(1))) {
    Value* b = Eval(e->arg(1));
    Unify(a, b);
    return is_and ? builder_.CreateAnd(a, b) : builder_.CreateOr(a, b);
  }
  if (a->getType()->isVectorTy()) {
    Value* outer = lanes_->mask;
    lanes_->mask = And(outer, is_and ? a : builder_.CreateNot(a));
    Value* b = Splat(Eval(e->arg(1)));
    lanes_->mask = outer;
    return is_and ? builder_.CreateLogicalAnd(a, b) : builder_.CreateLogicalOr(a, b);
  }
  BasicBlock* from = builder_.GetInsertBlock();
  BasicBlock* more = BasicBlock::Create(context_, is_and ? "and" : "or", function_);
  BasicBlock* end = BasicBlock::Create(context_, "end", function_);
  builder_.CreateCondBr(a, is_and ? more : end, is_and ? end : more);
  builder_.SetInsertPoint(more);
  Value* b = Eval(e->arg(1));
  if (Depends(e->arg(1))) b = Splat(b);
  BasicBlock* after = builder_.GetInsertBlock();
  builder_.CreateBr(end);
  builder_.SetInsertPoint(end);
  llvm::PHINode* phi = builder_.CreatePHI(b->getType(), 2);
  phi->addIncoming(llvm::ConstantInt::get(b->getType(), is_and ? 0 : 1), from);
  phi->addIncoming(b, after);
  return phi;
}

Value* Emitter::EvalSelect(Expr e) {
  Value* condition = Eval(e->arg(0));
  Value* a = Eval(e->arg(1));
  Value* b = Eval(e->arg(2));
  if (condition->getType()->isVectorTy()) {
    a = Splat(a);
    b = Splat(b);
  }
  Unify(a, b);
  return builder_.CreateSelect(condition, a, b);
}

Value* Emitter::EvalIf(Expr e) {
  if (IsSpeculatable(e->arg(1)) && IsSpeculatable(e->arg(2))) return EvalSelect(e);
  Value* condition = Eval(e->arg(0));
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    return Eval(e->arg(constant->isOne() ? 1 : 2));
  }
  return condition->getType()->isVectorTy() ? EvalIfByLane(e, condition)
                                            : EvalIfByBranch(e, condition);
}

Value* Emitter::EvalIfByLane(Expr e, Value* condition) {
  Value* outer = lanes_->mask;
  lanes_->mask = And(outer, condition);
  Value* a = Splat(Eval(e->arg(1)));
  lanes_->mask = And(outer, builder_.CreateNot(condition));
  Value* b = Splat(Eval(e->arg(2)));
  lanes_->mask = outer;
  return builder_.CreateSelect(condition, a, b);
}

Value* Emitter::EvalIfByBranch(Expr e, Value* condition) {
  const bool is_vector = Depends(e->arg(1)) || Depends(e->arg(2));
  BasicBlock* blocks[2] = {BasicBlock::Create(context_, "then", function_),
                           BasicBlock::Create(context_, "else", function_)};
  BasicBlock* end = BasicBlock::Create(context_, "end", function_);
  builder_.CreateCondBr(condition, blocks[0], blocks[1]);
  Value* values[2];
  for (int i = 0; i < 2; ++i) {
    builder_.SetInsertPoint(blocks[i]);
    values[i] = Eval(e->arg(i + 1));
    if (is_vector) values[i] = Splat(values[i]);
    blocks[i] = builder_.GetInsertBlock();
    builder_.CreateBr(end);
  }
  builder_.SetInsertPoint(end);
  llvm::PHINode* phi = builder_.CreatePHI(values[0]->getType(), 2);
  for (int i = 0; i < 2; ++i) phi->addIncoming(values[i], blocks[i]);
  return phi;
}

Value* Emitter::EvalCast(Expr e) {
  return numbers_.Convert(e->arg(0)->type, e->type, Eval(e->arg(0)));
}

Value* Emitter::EvalCall(Expr e) {
  const Intrinsic intrinsic = e->intrinsic();
  Value* x = Eval(e->arg(0));
  const bool is_float = e->type.is_float();
  const auto unary = [&](llvm::Intrinsic::ID id) { return builder_.CreateUnaryIntrinsic(id, x); };
  switch (intrinsic) {
    case Intrinsic::kAbs:
      if (is_float) return unary(llvm::Intrinsic::fabs);
      if (e->type.is_bool()) return x;
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, builder_.getFalse());
    case Intrinsic::kFloor:
      return is_float ? unary(llvm::Intrinsic::floor) : x;
    case Intrinsic::kCeil:
      return is_float ? unary(llvm::Intrinsic::ceil) : x;
    case Intrinsic::kRound:
      return is_float ? unary(llvm::Intrinsic::roundeven) : x;
    case Intrinsic::kSqrt:
      return unary(llvm::Intrinsic::sqrt);
    case Intrinsic::kRsqrt:
      return builder_.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0),
                                 unary(llvm::Intrinsic::sqrt));
    case Intrinsic::kPow: {
      Value* y = Eval(e->arg(1));
      Unify(x, y);
      return Libm("pow", {x, y});
    }
    default:
      break;
  }
  if (x->getType()->getScalarType()->isFloatTy() && HasInlineMath(intrinsic)) {
    return CallInlineMath(builder_, module_, intrinsic, x);
  }
  if (intrinsic == Intrinsic::kSigmoid) {
    Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
    return builder_.CreateFDiv(one,
                               builder_.CreateFAdd(one, Libm("exp", {builder_.CreateFNeg(x)})));
  }
  return Libm(std::string(ir::IntrinsicName(intrinsic)), {x});
}

Value* Emitter::Libm(const std::string& name, llvm::ArrayRef<Value*> args) {
  llvm::Type* type = args[0]->getType()->getScalarType();
  std::vector<llvm::Type*> types(args.size(), type);
  llvm::FunctionCallee callee = module_.getOrInsertFunction(
      name + (type->isFloatTy() ? "f" : ""), llvm::FunctionType::get(type, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setWillReturn();
  function->setDoesNotAccessMemory();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
  if (vector == nullptr) return builder_.CreateCall(callee, args);
  Value* result = llvm::PoisonValue::get(vector);
  for (unsigned l = 0; l < vector->getNumElements(); ++l) {
    std::vector<Value*> lane;
    for (Value* arg : args) lane.push_back(builder_.CreateExtractElement(arg, l));
    result = builder_.CreateInsertElement(result, builder_.CreateCall(callee, lane), l);
  }
  return result;
}

}  // namespace kiln::codegen
