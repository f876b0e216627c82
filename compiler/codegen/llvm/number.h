// Types of a program in registers and in memory, and conversions between them. Internal: this
// header includes LLVM.
//
//   float16, bfloat16   half, i16 in memory    float in registers
//   8-bit floats        i8 in memory           float in registers
//   bool                i8 in memory           i1 in registers
//   others              the same
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "base/float8.h"
#include "compiler/ir/type.h"

namespace kiln::codegen {

// The type, scalar or a vector as `shape` is.
inline llvm::Type* Like(llvm::Value* shape, llvm::Type* scalar) {
  return shape->getType()->getWithNewType(scalar);
}

// Values are scalars, or vectors of any length. Instructions go to where the builder stands.
class NumberFormats {
 public:
  // half_convert: the machine converts between float16 and float32 (F16C).
  NumberFormats(llvm::IRBuilder<>& builder, bool half_convert)
      : builder_(builder), half_convert_(half_convert) {}

  llvm::Type* ComputeType(ir::Type type);  // in registers
  llvm::Type* MemoryType(ir::Type type);
  llvm::Value* FromMemory(ir::Type type, llvm::Value* v);
  llvm::Value* ToMemory(ir::Type type, llvm::Value* v);
  llvm::Value* Convert(ir::Type from, ir::Type to, llvm::Value* v);      // in registers
  llvm::Value* Reinterpret(ir::Type from, ir::Type to, llvm::Value* v);  // the same bits

 private:
  // double -> float, rounded to odd: it may be rounded again
  llvm::Value* NarrowToFloat(llvm::Value* v);
  llvm::Value* HalfToFloat(llvm::Value* bits);  // i16 -> float, integer arithmetic
  llvm::Value* FloatToHalf(llvm::Value* v);     // float -> i16
  llvm::Value* BFloatToFloat(llvm::Value* bits);
  llvm::Value* FloatToBFloat(llvm::Value* v);
  llvm::Value* Float8ToFloat(llvm::Value* bits, const Float8Format& format);  // i8 -> float
  llvm::Value* FloatToFloat8(llvm::Value* v, const Float8Format& format);

  llvm::IRBuilder<>& builder_;
  const bool half_convert_;
};

}  // namespace kiln::codegen
