#include "compiler/codegen/llvm/minimum_maximum_writer.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace kiln::codegen {
namespace {
using llvm::Value;

constexpr unsigned kLeastRegisterBits = 128;

// Returns the number if v is the same number in all lanes. Null: v is anything else, or a NaN.
const llvm::ConstantFP* NumberOrNull(const Value* v) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant == nullptr) return nullptr;
  if (v->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number == nullptr || number->isNaN() ? nullptr : number;
}

}  // namespace

ExtremeWriter::ExtremeWriter(const ExtremeTarget& target, bool is_max, llvm::Type* type,
                             llvm::Instruction& at)
    : b_(&at), target_(target), is_max_(is_max), type_(type) {
  llvm::Type* const element = type->getScalarType();
  const unsigned least = kLeastRegisterBits / element->getScalarSizeInBits();
  const unsigned most = target.register_bits / element->getScalarSizeInBits();
  const unsigned lanes = std::clamp(std::bit_ceil(Lanes()), least, most);
  compared_ = llvm::FixedVectorType::get(element, lanes);
  bits_ = compared_->getWithNewType(b_.getIntNTy(element->getScalarSizeInBits()));
  piece_ = type->isVectorTy() ? compared_ : element;
  num_pieces_ = (Lanes() + lanes - 1) / lanes;
}

unsigned ExtremeWriter::Lanes() const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
  return vector == nullptr ? 1 : vector->getNumElements();
}

Value* ExtremeWriter::Piece(Value* x, unsigned piece) {
  if (piece_ == type_) return x;
  const unsigned lanes = compared_->getNumElements();
  std::vector<int> from;
  for (unsigned l = piece * lanes; l < (piece + 1) * lanes; ++l) {
    from.push_back(l < Lanes() ? static_cast<int>(l) : llvm::PoisonMaskElem);
  }
  return b_.CreateShuffleVector(x, from);
}

Value* ExtremeWriter::Joined(std::vector<Value*> pieces) {
  if (piece_ == type_) return pieces[0];
  Value* all = pieces.size() == 1 ? pieces[0] : llvm::concatenateVectors(b_, pieces);
  return all->getType() == type_
             ? all
             : b_.CreateShuffleVector(all, llvm::createSequentialMask(0, Lanes(), 0));
}

// Comparisons and operations on bits are made in vectors: LLVM's code for single values goes
// through other registers.
Value* ExtremeWriter::AsVector(Value* piece) {
  if (piece->getType()->isVectorTy()) return piece;
  return b_.CreateInsertElement(llvm::PoisonValue::get(compared_), piece, uint64_t{0});
}

Value* ExtremeWriter::Bits(Value* piece) { return b_.CreateBitCast(AsVector(piece), bits_); }

// Computes the instruction's result: b if an operand is NaN or both are zeros.
Value* ExtremeWriter::Instruction(Value* a, Value* b) {
  Value* first = is_max_ ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
  return b_.CreateSelect(first, a, b);
}

Value* ExtremeWriter::MergedSigns(Value* a, Value* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return is_max_ ? b_.CreateAnd(a, b) : b_.CreateOr(a, b);
}

Value* ExtremeWriter::OfTwo(Value* a, Value* b) {
  if (NumberOrNull(b) != nullptr) std::swap(a, b);
  if (const llvm::ConstantFP* number = NumberOrNull(a)) return WithNumber(number, b);
  // A value that a loop carries comes second, where the next iteration waits for less.
  if (llvm::isa<llvm::PHINode>(a)) std::swap(a, b);
  if (is_max_ && target_.has_masks) return Finish(Combine(Term(a), Term(b)));
  std::vector<Value*> pieces;
  for (unsigned p = 0; p < num_pieces_; ++p) pieces.push_back(BothWays(Piece(a, p), Piece(b, p)));
  return Joined(std::move(pieces));
}

// If x is a zero of the other sign than the extreme one, the result gets the sign of the number.
Value* ExtremeWriter::WithNumber(const llvm::ConstantFP* number, Value* x) {
  const auto splat = [&](const llvm::APFloat& value) {
    return llvm::ConstantFP::get(type_, value);
  };
  const bool is_other_zero = number->isZero() && number->isNegative() != is_max_;
  if (!is_other_zero) return Instruction(splat(number->getValueAPF()), x);
  llvm::APFloat zero = number->getValueAPF();
  zero.changeSign();
  Value* y = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, Instruction(splat(zero), x));
  return is_max_ ? y : b_.CreateFNeg(y);
}

Value* ExtremeWriter::BothWays(Value* a, Value* b) {
  llvm::Type* const type = a->getType();
  llvm::Type* const ints = type->getWithNewType(bits_->getScalarType());
  Value* x = b_.CreateBitCast(Instruction(a, b), ints);
  Value* y = b_.CreateBitCast(Instruction(b, a), ints);
  if (!is_max_) return b_.CreateBitCast(b_.CreateOr(x, y), type);
  Value* is_nan = b_.CreateFCmpUNO(a, b);
  if (!type->isVectorTy()) {
    return b_.CreateSelect(is_nan, llvm::ConstantFP::getNaN(type),
                           b_.CreateBitCast(b_.CreateAnd(x, y), type));
  }
  Value* ones = llvm::Constant::getAllOnesValue(ints);
  return b_.CreateBitCast(b_.CreateSelect(is_nan, ones, b_.CreateAnd(x, y)), type);
}

Value* ExtremeWriter::OfElements(Value* vector) {
  auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
  for (unsigned lanes = type->getNumElements() / 2; lanes > 0; lanes /= 2) {
    Value* low = b_.CreateShuffleVector(vector, llvm::createSequentialMask(0, lanes, 0));
    Value* high = b_.CreateShuffleVector(vector, llvm::createSequentialMask(lanes, lanes, 0));
    ExtremeWriter half(target_, is_max_, low->getType(), *b_.GetInsertPoint());
    vector = half.OfTwo(low, high);
  }
  return b_.CreateExtractElement(vector, uint64_t{0});
}

Extreme ExtremeWriter::Term(Value* x) {
  Extreme term(num_pieces_);
  for (unsigned p = 0; p < num_pieces_; ++p) {
    term[p].value = Piece(x, p);
    term[p].is_open = true;
  }
  return term;
}

Extreme ExtremeWriter::Combine(const Extreme& a, const Extreme& b) {
  Extreme both(num_pieces_);
  for (unsigned p = 0; p < num_pieces_; ++p) both[p] = CombineParts(a[p], b[p]);
  return both;
}

ExtremePart ExtremeWriter::CombineParts(ExtremePart a, ExtremePart b) {
  if (a.value == nullptr) return b;
  if (b.value == nullptr) return a;
  // The second value's NaN is in the result.
  if (a.is_open && !b.is_open) std::swap(a, b);
  if (a.is_open) Observe(a, a.value);
  ExtremePart both = a;
  both.value = Instruction(a.value, b.value);
  both.is_open = b.is_open;
  both.signs = MergedSigns(a.signs, b.signs);
  if (b.is_ordered != nullptr) {
    both.is_ordered =
        a.is_ordered == nullptr ? b.is_ordered : b_.CreateAnd(a.is_ordered, b.is_ordered);
  }
  if (b.waiting != nullptr) Observe(both, b.waiting);
  return both;
}

void ExtremeWriter::Observe(ExtremePart& part, Value* x) {
  if (NumberOrNull(x) != nullptr) {
    part.signs = MergedSigns(part.signs, Bits(x));
  } else if (part.waiting == nullptr) {
    part.waiting = x;
  } else {
    Compare(part, std::exchange(part.waiting, nullptr), x);
  }
}

void ExtremeWriter::Compare(ExtremePart& part, Value* a, Value* b) {
  Value* is_ordered = b_.CreateFCmpORD(AsVector(a), AsVector(b));
  part.is_ordered =
      part.is_ordered == nullptr ? is_ordered : b_.CreateAnd(part.is_ordered, is_ordered);
  part.signs = MergedSigns(part.signs, a == b ? Bits(a) : MergedSigns(Bits(a), Bits(b)));
}

// An empty assembly text ends a region of the scheduler. Passes over the IR see no memory effect.
void ExtremeWriter::Pin(Extreme& extreme) {
  if (!target_.has_masks) return;
  for (ExtremePart& part : extreme) {
    if (part.value == nullptr) continue;
    llvm::Type* const type = part.value->getType();
    auto* nothing = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=v,0",
                                         /*hasSideEffects=*/true);
    llvm::CallInst* call = b_.CreateCall(nothing, {part.value});
    call->setMemoryEffects(llvm::MemoryEffects::none());
    part.value = call;
  }
}

Value* ExtremeWriter::Finish(Extreme extreme) {
  std::vector<Value*> pieces;
  for (const ExtremePart& part : extreme) pieces.push_back(FinishPart(part));
  return Joined(std::move(pieces));
}

Value* ExtremeWriter::FinishPart(ExtremePart part) {
  // A value that is the only one to compare is the NaN itself.
  Value* nan = part.is_ordered == nullptr && part.waiting != nullptr
                   ? AsVector(part.waiting)
                   : llvm::ConstantFP::getNaN(compared_);
  if (part.waiting != nullptr) Compare(part, part.waiting, part.waiting);
  if (part.signs == nullptr) return part.value;
  Value* const sign =
      llvm::ConstantInt::get(bits_, llvm::APInt::getSignMask(bits_->getScalarSizeInBits()));
  Value* bits = Bits(part.value);
  bits = is_max_ ? b_.CreateAnd(bits, b_.CreateOr(part.signs, b_.CreateNot(sign)))
                 : b_.CreateOr(bits, b_.CreateAnd(part.signs, sign));
  Value* result = b_.CreateBitCast(bits, compared_);
  if (part.is_ordered != nullptr) result = b_.CreateSelect(part.is_ordered, result, nan);
  return piece_->isVectorTy() ? result : b_.CreateExtractElement(result, uint64_t{0});
}

}  // namespace kiln::codegen
