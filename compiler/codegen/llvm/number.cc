#include "compiler/codegen/llvm/number.h"

#include <llvm/IR/Intrinsics.h>

#include "compiler/ir/scalar.h"

namespace kiln::codegen {
using llvm::Value;

llvm::Type* NumberFormats::ComputeType(ir::Type type) {
  if (type.is_bool()) return builder_.getInt1Ty();
  if (type.is_int()) return builder_.getIntNTy(type.bits);
  return type.bits == 64 ? builder_.getDoubleTy() : builder_.getFloatTy();
}

llvm::Type* NumberFormats::MemoryType(ir::Type type) {
  if (type.is_bool() || ir::Float8FormatOf(type) != nullptr) return builder_.getInt8Ty();
  if (type == ir::kBFloat16 || (type == ir::kFloat16 && !half_convert_))
    return builder_.getInt16Ty();
  if (type == ir::kFloat16) return builder_.getHalfTy();
  return ComputeType(type);
}

Value* NumberFormats::FromMemory(ir::Type type, Value* v) {
  if (type.is_bool()) return builder_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (type == ir::kBFloat16) return BFloatToFloat(v);
  if (const Float8Format* format = ir::Float8FormatOf(type)) return Float8ToFloat(v, *format);
  if (type != ir::kFloat16) return v;
  return half_convert_ ? builder_.CreateFPExt(v, Like(v, builder_.getFloatTy())) : HalfToFloat(v);
}

Value* NumberFormats::ToMemory(ir::Type type, Value* v) {
  if (type.is_bool()) return builder_.CreateZExt(v, Like(v, builder_.getInt8Ty()));
  if (type == ir::kBFloat16) return FloatToBFloat(v);
  if (const Float8Format* format = ir::Float8FormatOf(type)) return FloatToFloat8(v, *format);
  if (type != ir::kFloat16) return v;
  return half_convert_ ? builder_.CreateFPTrunc(v, Like(v, builder_.getHalfTy())) : FloatToHalf(v);
}

// Rounding twice (64 -> 32 -> 16 or 8 bits) goes wrong only on ties that the first rounding made.
// Rounding to odd makes none.
Value* NumberFormats::NarrowToFloat(Value* v) {
  llvm::Type* bits_type = Like(v, builder_.getInt32Ty());
  Value* near = builder_.CreateFPTrunc(v, Like(v, builder_.getFloatTy()));
  Value* back = builder_.CreateFPExt(near, v->getType());
  Value* inexact = builder_.CreateFCmpONE(back, v);
  Value* too_far =
      builder_.CreateFCmpOGT(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                             builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
  Value* bits = builder_.CreateBitCast(near, bits_type);
  Value* truncated = builder_.CreateSub(bits, builder_.CreateZExt(too_far, bits_type));
  Value* odd = builder_.CreateOr(truncated, llvm::ConstantInt::get(bits_type, 1));
  return builder_.CreateBitCast(builder_.CreateSelect(inexact, odd, bits), near->getType());
}

Value* NumberFormats::HalfToFloat(Value* half) {
  llvm::Type* type = Like(half, builder_.getInt32Ty());
  llvm::Type* float_type = Like(half, builder_.getFloatTy());
  const auto constant = [&](uint32_t v) { return llvm::ConstantInt::get(type, v); };
  Value* bits = builder_.CreateZExt(half, type);
  Value* sign = builder_.CreateShl(builder_.CreateAnd(bits, constant(0x8000)), constant(16));
  Value* magnitude = builder_.CreateShl(builder_.CreateAnd(bits, constant(0x7fff)), constant(13));
  // The exponent's bias differs by 112. The product is exact, denormals included.
  Value* scaled = builder_.CreateFMul(builder_.CreateBitCast(magnitude, float_type),
                                      llvm::ConstantFP::get(float_type, 0x1p112));
  Value* special = builder_.CreateICmpUGE(magnitude, constant(0x7c00u << 13));
  Value* result = builder_.CreateSelect(special, builder_.CreateOr(magnitude, constant(0x7f800000)),
                                        builder_.CreateBitCast(scaled, type));
  return builder_.CreateBitCast(builder_.CreateOr(result, sign), float_type);
}

Value* NumberFormats::FloatToHalf(Value* v) {
  llvm::Type* type = Like(v, builder_.getInt32Ty());
  const auto constant = [&](uint32_t c) { return llvm::ConstantInt::get(type, c); };
  Value* bits = builder_.CreateBitCast(v, type);
  Value* sign = builder_.CreateAnd(builder_.CreateLShr(bits, constant(16)), constant(0x8000));
  Value* magnitude = builder_.CreateAnd(bits, constant(0x7fffffff));
  // Normal results: changes the bias and rounds to nearest even on 13 dropped bits. A carry moves
  // into the exponent, up to infinity.
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, constant(13)), constant(1));
  Value* normal = builder_.CreateAdd(builder_.CreateAdd(magnitude, constant(0xc8000fff)), odd);
  normal = builder_.CreateLShr(normal, constant(13));
  // Denormal results: adding 1/2 lets the float unit round at the right bit.
  Value* shifted = builder_.CreateFAdd(builder_.CreateBitCast(magnitude, v->getType()),
                                       llvm::ConstantFP::get(v->getType(), 0.5));
  Value* denormal = builder_.CreateSub(builder_.CreateBitCast(shifted, type), constant(0x3f000000));
  Value* result = builder_.CreateSelect(builder_.CreateICmpULT(magnitude, constant(0x38800000)),
                                        denormal, normal);
  result = builder_.CreateSelect(builder_.CreateICmpUGE(magnitude, constant(0x47800000)),
                                 constant(0x7c00), result);
  result = builder_.CreateSelect(builder_.CreateICmpUGT(magnitude, constant(0x7f800000)),
                                 constant(0x7e00), result);
  return builder_.CreateTrunc(builder_.CreateOr(result, sign), Like(v, builder_.getInt16Ty()));
}

Value* NumberFormats::BFloatToFloat(Value* bits) {
  Value* wide = builder_.CreateZExt(bits, Like(bits, builder_.getInt32Ty()));
  return builder_.CreateBitCast(
      builder_.CreateShl(wide, llvm::ConstantInt::get(wide->getType(), 16)),
      Like(bits, builder_.getFloatTy()));
}

// Computes with integers, because the instruction for the conversion flushes denormals.
Value* NumberFormats::FloatToBFloat(Value* v) {
  llvm::Type* type = Like(v, builder_.getInt32Ty());
  const auto constant = [&](uint32_t c) { return llvm::ConstantInt::get(type, c); };
  Value* bits = builder_.CreateBitCast(v, type);
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(bits, constant(16)), constant(1));
  Value* rounded = builder_.CreateAdd(builder_.CreateAdd(bits, constant(0x7fff)), odd);
  Value* quiet = builder_.CreateOr(bits, constant(0x400000));
  Value* result = builder_.CreateSelect(builder_.CreateFCmpUNO(v, v), quiet, rounded);
  return builder_.CreateTrunc(builder_.CreateLShr(result, constant(16)),
                              Like(v, builder_.getInt16Ty()));
}

// Computes the same as base/numbers/float8.cc.
Value* NumberFormats::Float8ToFloat(Value* v, const Float8Format& format) {
  llvm::Type* type = Like(v, builder_.getInt32Ty());
  llvm::Type* float_type = Like(v, builder_.getFloatTy());
  const auto constant = [&](uint32_t c) { return llvm::ConstantInt::get(type, c); };
  Value* bits = builder_.CreateZExt(v, type);
  Value* sign = builder_.CreateShl(builder_.CreateAnd(bits, constant(0x80)), constant(24));
  Value* magnitude = builder_.CreateAnd(bits, constant(0x7f));
  Value* shifted =
      builder_.CreateShl(magnitude, constant(static_cast<uint32_t>(format.dropped_bits())));
  Value* special = builder_.CreateOr(shifted, constant(0x7f800000));
  Value* normal = builder_.CreateAdd(shifted, constant(format.rebias()));
  Value* result = builder_.CreateSelect(builder_.CreateICmpUGT(magnitude, constant(format.largest)),
                                        special, normal);
  Value* small = builder_.CreateFMul(builder_.CreateUIToFP(magnitude, float_type),
                                     llvm::ConstantFP::get(float_type, format.least()));
  Value* is_small = builder_.CreateICmpULT(magnitude, constant(1u << format.mantissa_bits));
  result = builder_.CreateSelect(is_small, builder_.CreateBitCast(small, type), result);
  return builder_.CreateBitCast(builder_.CreateOr(result, sign), float_type);
}

Value* NumberFormats::FloatToFloat8(Value* v, const Float8Format& format) {
  llvm::Type* type = Like(v, builder_.getInt32Ty());
  const auto constant = [&](uint32_t c) { return llvm::ConstantInt::get(type, c); };
  const auto drop = static_cast<uint32_t>(format.dropped_bits());
  Value* bits = builder_.CreateBitCast(v, type);
  Value* sign = builder_.CreateAnd(builder_.CreateLShr(bits, constant(24)), constant(0x80));
  Value* magnitude = builder_.CreateAnd(bits, constant(0x7fffffff));
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, constant(drop)), constant(1));
  const uint32_t half = (1u << (drop - 1)) - 1;
  Value* normal = builder_.CreateAdd(magnitude, constant(half - format.rebias()));
  normal = builder_.CreateLShr(builder_.CreateAdd(normal, odd), constant(drop));
  Value* sum =
      builder_.CreateFAdd(builder_.CreateBitCast(magnitude, v->getType()),
                          builder_.CreateBitCast(constant(format.aligning()), v->getType()));
  Value* small = builder_.CreateSub(builder_.CreateBitCast(sum, type), constant(format.aligning()));
  Value* result = builder_.CreateSelect(
      builder_.CreateICmpULT(magnitude, constant(format.least_normal())), small, normal);
  result = builder_.CreateSelect(
      builder_.CreateICmpUGE(magnitude, constant(format.FloatBits(format.largest))),
      constant(format.largest), result);
  result = builder_.CreateSelect(builder_.CreateICmpUGT(magnitude, constant(0x7f800000)),
                                 constant(0x7f), result);
  return builder_.CreateTrunc(builder_.CreateOr(result, sign), Like(v, builder_.getInt8Ty()));
}

Value* NumberFormats::Reinterpret(ir::Type from, ir::Type to, Value* v) {
  Value* bits = ToMemory(from, v);
  return FromMemory(to, builder_.CreateBitCast(bits, Like(v, MemoryType(to))));
}

Value* NumberFormats::Convert(ir::Type from, ir::Type to, Value* v) {
  if (from == to) return v;
  llvm::Type* type = Like(v, ComputeType(to));
  if (to.is_bool()) {
    llvm::Constant* zero = llvm::Constant::getNullValue(v->getType());
    return from.is_float() ? builder_.CreateFCmpUNE(v, zero) : builder_.CreateICmpNE(v, zero);
  }
  if (to.is_int()) {
    if (from.is_float()) {
      const auto saturating =
          to.is_unsigned() ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
      return builder_.CreateIntrinsic(saturating, {type, v->getType()}, {v});
    }
    return builder_.CreateIntCast(v, type, /*isSigned=*/!from.is_bool() && !from.is_unsigned());
  }
  if (to.is_short_float()) {
    if (from.is_int() && from.bits >= 32) {
      llvm::Type* wide = Like(v, builder_.getDoubleTy());
      v = from.is_unsigned() ? builder_.CreateUIToFP(v, wide) : builder_.CreateSIToFP(v, wide);
      from = ir::kFloat64;
    }
    if (from == ir::kFloat64) v = NarrowToFloat(v);
    if (!from.is_float()) v = Convert(from, ir::kFloat32, v);
    return FromMemory(to, ToMemory(to, v));
  }
  if (from.is_bool() || from.is_unsigned()) return builder_.CreateUIToFP(v, type);
  if (from.is_int()) return builder_.CreateSIToFP(v, type);
  return builder_.CreateFPCast(v, type);
}

}  // namespace kiln::codegen
