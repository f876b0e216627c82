/* libkiln_runtime: runs a compiled network (a .kiln file) from any language that calls C.
 *
 *   KilnNetwork* net = kiln_load("net.kiln", NULL);
 *   if (net == NULL) { puts(kiln_last_error()); return 1; }
 *   const void* inputs[] = {x};
 *   void* outputs[] = {y};
 *   if (kiln_run(net, inputs, 1, outputs, 1) != 0) puts(kiln_last_error());
 *   kiln_free(net);
 *
 * It needs libc, and for networks that were compiled for CUDA an NVIDIA driver (libcuda.so.1); no
 * compiler, no toolkit, no other library of Kiln.
 *
 * Errors: functions that return an int return 0, or -1 where they fail; those that return a pointer
 * return NULL. kiln_last_error then says why, in one sentence.
 *
 * Threads: any thread may call anything at any time, but for kiln_free, which must be a network's
 * last call. Calls of one network wait for each other; networks run beside each other.
 *
 * Names, shapes and other pointers that a network hands out are valid until it is freed. */
#ifndef KILN_RUNTIME_KILN_RUNTIME_H_
#define KILN_RUNTIME_KILN_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. It grows with functions, and with members at the ends of structs that begin with
 * their size; a library serves headers up to its own version (kiln_abi_version). */
#define KILN_RUNTIME_ABI 1
int kiln_abi_version(void);
/* "Kiln runtime, ABI 1, files of version 3". */
const char* kiln_version(void);

/* Of the last call on this thread that failed; valid until the next one. Never NULL. */
const char* kiln_last_error(void);

typedef struct KilnNetwork KilnNetwork;

/* Set to zeros, but for the size. */
typedef struct KilnLoadOptions {
  size_t size;        /* sizeof(KilnLoadOptions) */
  int32_t threads;    /* of a CPU; 0: one per core that this process may run on */
  int32_t no_pinning; /* 1: threads are not tied to cores */
  int32_t gpu;        /* which, as CUDA counts them */
  int32_t streams;    /* that branches may use on a GPU; 0: as is faster, 1: one kernel at a time */
  int32_t skip_checksum; /* 1: of the weights, which takes a second for some gigabytes */
} KilnLoadOptions;

/* `options` may be NULL. Fails where the file is damaged, or was compiled for another device. A file
 * is code: load what you trust. It must not be changed while it is loaded; it may be replaced. */
KilnNetwork* kiln_load(const char* path, const KilnLoadOptions* options);
/* NULL is fine. */
void kiln_free(KilnNetwork* network);

typedef struct KilnTensorInfo {
  const char* name;
  const char* dtype; /* "float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "bool", ... */
  int32_t ndim;      /* 0: a scalar */
  const int64_t* shape;
  int64_t bytes; /* row-major, contiguous */
} KilnTensorInfo;

int32_t kiln_num_inputs(const KilnNetwork* network);
int32_t kiln_num_outputs(const KilnNetwork* network);
int kiln_input_info(const KilnNetwork* network, int32_t index, KilnTensorInfo* info);
int kiln_output_info(const KilnNetwork* network, int32_t index, KilnTensorInfo* info);

/* One pointer per input and output, to as many bytes as it has; outputs overlap nothing. Memory of
 * the host, or for CUDA also memory of the network's GPU, which is used where it is. Memory that is
 * not aligned to 64 bytes is copied. On return the outputs are there. On CUDA it waits for the legacy
 * default stream, and for no other: what another stream writes must be done before. */
int kiln_run(KilnNetwork* network, const void* const* inputs, int32_t num_inputs,
             void* const* outputs, int32_t num_outputs);

/* DLPack 0.8, whose DLTensor is this struct: give &managed->dl_tensor, cast. */
typedef struct KilnDLDevice {
  int32_t device_type; /* 1 CPU, 2 CUDA, 3 CUDA's pinned host memory, 13 CUDA managed */
  int32_t device_id;
} KilnDLDevice;
typedef struct KilnDLDataType {
  uint8_t code; /* 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2 */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} KilnDLDataType;
typedef struct KilnDLTensor {
  void* data;
  KilnDLDevice device;
  int32_t ndim;
  KilnDLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: contiguous */
  uint64_t byte_offset;
} KilnDLTensor;

/* As kiln_run; refuses tensors of another dtype or shape, on another device, or not contiguous. */
int kiln_run_tensors(KilnNetwork* network, const KilnDLTensor* const* inputs, int32_t num_inputs,
                     const KilnDLTensor* const* outputs, int32_t num_outputs);

/* Where the network runs: outputs in memory of this device are not copied. */
KilnDLDevice kiln_device(const KilnNetwork* network);

/* Zeros stand for what is in brackets. */
typedef struct KilnBenchOptions {
  size_t size;         /* sizeof(KilnBenchOptions) */
  int32_t warmup;      /* runs that are not timed [3] */
  int32_t repeat;      /* readings [10] */
  int64_t number;      /* runs of one reading, back to back [1] */
  double min_repeat_s; /* more runs, until a reading takes so long [0] */
} KilnBenchOptions;

/* Seconds of one run, for each reading, into `seconds`, which has room for `capacity`; fails where
 * that is less than the readings. On CUDA by the GPU's clock, with inputs and outputs in its memory.
 * `inputs` as for kiln_run; NULL: random ones. Returns the number of readings, or -1. */
int32_t kiln_bench(KilnNetwork* network, const KilnBenchOptions* options, const void* const* inputs,
                   int32_t num_inputs, double* seconds, int32_t capacity);

typedef struct KilnKernelInfo {
  const char* name;
  const char* workload; /* key */
  const char* source;   /* of its schedule: "tuned", "reused", "untuned" */
  const char* record;   /* id; "": none */
  double expected_s;    /* by the record; 0: not known */
  double flops;
  double bytes; /* that it must at least read and write */
} KilnKernelInfo;

int32_t kiln_num_kernels(const KilnNetwork* network);
int kiln_kernel_info(const KilnNetwork* network, int32_t index, KilnKernelInfo* info);
/* Seconds of each kernel by itself, in order, the mean of `number` calls back to back. `seconds` has
 * room for `capacity`. Returns the number of kernels, or -1. */
int32_t kiln_profile(KilnNetwork* network, int64_t number, const void* const* inputs,
                     int32_t num_inputs, double* seconds, int32_t capacity);

typedef struct KilnMemoryUse {
  int64_t constants;
  int64_t arena;
  int64_t staging; /* copies of inputs and outputs that could not be used where they are */
} KilnMemoryUse;
void kiln_memory_use(const KilnNetwork* network, KilnMemoryUse* use);

#ifdef __cplusplus
}
#endif

#endif /* KILN_RUNTIME_KILN_RUNTIME_H_ */
