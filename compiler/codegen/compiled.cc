#include "compiler/codegen/compiled.h"

namespace kiln::codegen {

int64_t Argument::bytes() const {
  if (packing) return PackedElements(*packing) * type.bytes();
  int64_t bytes = type.bytes();
  for (const int64_t extent : shape) bytes *= extent;
  return bytes;
}

Argument ArgumentOf(const ir::Buffer& buffer) {
  return {.name = buffer.name,
          .type = buffer.type,
          .shape = buffer.packing ? buffer.packing->shape : buffer.shape,
          .scope = buffer.scope,
          .index_limit = buffer.index_limit,
          .packing = buffer.packing};
}

}  // namespace kiln::codegen
