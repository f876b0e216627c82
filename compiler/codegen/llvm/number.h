// Types of a program in registers and in memory, and conversions between them. Internal: this
// header includes LLVM.
//
//   float16, bfloat16   half, i16 in memory    float in registers
//   8-bit floats        i8 in memory           float in registers
//   bool                i8 in memory           i1 in registers
//   others              the same
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "base/numbers/float8.h"
#include "compiler/ir/type.h"

namespace kiln::codegen {

// Returns the type as a scalar or a vector, like that of `shape`.
inline llvm::Type* Like(llvm::Value* shape, llvm::Type* scalar) {
  return shape->getType()->getWithNewType(scalar);
}

// Values are scalars, or vectors of any length. Instructions are inserted at the builder's
// position.
class NumberFormats {
 public:
  // half_convert: the machine converts between float16 and float32 (F16C).
  NumberFormats(llvm::IRBuilder<>& builder, bool half_convert)
      : builder_(builder), half_convert_(half_convert) {}

  // Type in registers.
  llvm::Type* ComputeType(ir::Type type);
  llvm::Type* MemoryType(ir::Type type);
  llvm::Value* FromMemory(ir::Type type, llvm::Value* v);
  llvm::Value* ToMemory(ir::Type type, llvm::Value* v);
  // Converts between types in registers.
  llvm::Value* Convert(ir::Type from, ir::Type to, llvm::Value* v);
  // Returns the value of type `to` that has the same bits as `v`, in registers.
  llvm::Value* Reinterpret(ir::Type from, ir::Type to, llvm::Value* v);

 private:
  // Converts double to float, rounded to odd, so that the result may be rounded again.
  llvm::Value* NarrowToFloat(llvm::Value* v);
  // Converts i16 to float by integer arithmetic.
  llvm::Value* HalfToFloat(llvm::Value* bits);
  // Converts float to i16.
  llvm::Value* FloatToHalf(llvm::Value* v);
  llvm::Value* BFloatToFloat(llvm::Value* bits);
  llvm::Value* FloatToBFloat(llvm::Value* v);
  // Converts i8 to float.
  llvm::Value* Float8ToFloat(llvm::Value* bits, const Float8Format& format);
  llvm::Value* FloatToFloat8(llvm::Value* v, const Float8Format& format);

  llvm::IRBuilder<>& builder_;
  const bool half_convert_;
};

}  // namespace kiln::codegen
