#include "base/freed_memory.h"

#include <malloc.h>

namespace kiln {

void KeepFreedMemory() {
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  // Larger ones are the system's each time. Setting the one limit would freeze the other at its
  // small default.
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
}

}  // namespace kiln
