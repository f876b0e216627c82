// The element types of ONNX (TensorProto.DataType) that Kiln has.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "compiler/ir/type.h"

namespace kiln::frontend {

// An integer type that Kiln lacks, uint8 for one: inside a network a wider one holds its values.
struct NarrowType {
  int onnx_type = 0;  // 0: Kiln has the type
  int64_t least = 0, most = 0;

  int64_t count() const { return most - least + 1; }  // of its values
  int bytes() const { return count() > 1 << 16 ? 4 : count() > 1 << 8 ? 2 : 1; }
  bool operator==(const NarrowType&) const = default;
};

// How the elements of a value are held.
struct HeldType {
  ir::Type type;
  NarrowType narrow = {};
};

// uint8, uint16 and int16 are held in int32, uint32 in int64, others as they are. Unimplemented: a
// type that Kiln does not compute with, named in the message.
StatusOr<HeldType> HeldElementType(int onnx_type);

// Of what enters and leaves a network, which keeps its type. Unimplemented as above, also for what is
// held in a wider type.
StatusOr<ir::Type> ElementType(int onnx_type);
// "uint8"; of a number that ONNX does not have: "type 99".
std::string ElementTypeName(int onnx_type);

}  // namespace kiln::frontend
