/* The contract between a compiled CPU program (a shared object) and the process that loads it.
 *
 * The shared object exports one function, KilnEntry, under the name KILN_CPU_ENTRY. The function
 * needs nothing from the loader but this context (and libm and libc, which every process has). It
 * allocates nothing, and may be called again and again by one thread at a time. */
#ifndef KILN_PROTO_CPU_ABI_H_
#define KILN_PROTO_CPU_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One slice [begin, end) of a parallel loop; `closure` is opaque to the loader. */
typedef void (*KilnTask)(void* closure, int64_t begin, int64_t end);

typedef struct KilnCpuContext {
  /* Cuts [0, extent) into contiguous slices, runs task over them on any threads, and returns when
   * all are done. Does not nest. Each thread has at least KILN_CPU_STACK_BYTES of stack, and so has
   * the caller of KilnEntry. */
  void (*parallel_for)(struct KilnCpuContext* context, KilnTask task, void* closure,
                       int64_t extent);
  /* The loader's own data. */
  void* loader;
} KilnCpuContext;

/* args: one pointer per LaunchPlan.args, each aligned to its alignment_bytes. Returns 0. */
typedef int32_t (*KilnEntry)(KilnCpuContext* context, void* const* args);

#define KILN_CPU_ENTRY "kiln_entry"
#define KILN_CPU_STACK_BYTES (64 << 20)

#ifdef __cplusplus
}
#endif

#endif /* KILN_PROTO_CPU_ABI_H_ */
