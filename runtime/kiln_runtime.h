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
 * Errors: functions that return an int return 0, or -1 if they fail; functions that return a
 * pointer return NULL if they fail. kiln_last_error then says why, in one sentence.
 *
 * Threads: any thread may call any function at any time, but kiln_free must be a network's last
 * call. Calls of one network wait for each other; networks run beside each other. On a CPU a
 * network of much work runs on threads that it owns, with 64 MiB of stack, and the caller waits. A
 * network of less than some 0.1 ms runs on the caller's thread, on a stack that the network owns
 * and with floating point as the network wants it, whatever the caller's is; parallel loops also
 * use the network's threads.
 *
 * Names, shapes and other pointers that a network hands out are valid until it is freed. */
#ifndef KILN_RUNTIME_KILN_RUNTIME_H_
#define KILN_RUNTIME_KILN_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. It grows when functions are added, or members at the ends of structs
 * that begin with their size. A library serves headers up to its own version (kiln_abi_version). */
#define KILN_RUNTIME_ABI 2
int kiln_abi_version(void);
/* Returns "Kiln runtime, ABI 2, files of version 3". */
const char* kiln_version(void);

/* Returns the error of the last call on this thread that failed; valid until the next such call.
 * Never NULL. */
const char* kiln_last_error(void);

typedef struct KilnNetwork KilnNetwork;

/* The caller sets all members to zeros, but the size. */
typedef struct KilnLoadOptions {
  /* sizeof(KilnLoadOptions) */
  size_t size;
  /* Threads on a CPU; 0: one per core that this process may run on. */
  int32_t threads;
  /* 1: threads are not tied to cores. */
  int32_t no_pinning;
  /* Number of the GPU, as CUDA counts. */
  int32_t gpu;
  /* Streams that branches may use on a GPU; 0: the faster number, 1: one kernel at a time. */
  int32_t streams;
  /* 1: does not check the checksum of the weights, which takes a second for some gigabytes. */
  int32_t skip_checksum;
} KilnLoadOptions;

/* Loads a network. `options` may be NULL. Fails if the file is damaged, or was compiled for another
 * device. A file is code: load only files that you trust. The file must not be changed while it is
 * loaded; it may be replaced. */
KilnNetwork* kiln_load(const char* path, const KilnLoadOptions* options);
/* Loads a network from the bytes of a file, in memory that stays as it is until the network is
 * freed. */
KilnNetwork* kiln_load_memory(const void* bytes, size_t size, const KilnLoadOptions* options);
/* Frees a network. NULL is allowed. */
void kiln_free(KilnNetwork* network);

typedef struct KilnTensorInfo {
  const char* name;
  /* "float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "bool", ... */
  const char* dtype;
  /* Number of dimensions; 0: a scalar. */
  int32_t ndim;
  const int64_t* shape;
  /* Bytes of the tensor, row-major and contiguous. */
  int64_t bytes;
} KilnTensorInfo;

int32_t kiln_num_inputs(const KilnNetwork* network);
int32_t kiln_num_outputs(const KilnNetwork* network);
int kiln_input_info(const KilnNetwork* network, int32_t index, KilnTensorInfo* info);
int kiln_output_info(const KilnNetwork* network, int32_t index, KilnTensorInfo* info);

/* Runs the network. There is one pointer per input and output, to as many bytes as the tensor has.
 * Outputs overlap no other memory. Pointers are to host memory, or for CUDA also to memory of the
 * network's GPU, which is used in place. Memory that is not aligned to 64 bytes is copied. On
 * return the outputs are there. On CUDA the call waits for the legacy default stream, and for no
 * other stream: writes of other streams to the inputs must be done before. */
int kiln_run(KilnNetwork* network, const void* const* inputs, int32_t num_inputs,
             void* const* outputs, int32_t num_outputs);

/* Types of DLPack 0.8. Its DLTensor has the layout of KilnDLTensor: pass &managed->dl_tensor with a
 * cast. */
typedef struct KilnDLDevice {
  /* 1 CPU, 2 CUDA, 3 CUDA's pinned host memory, 13 CUDA managed. */
  int32_t device_type;
  int32_t device_id;
} KilnDLDevice;
typedef struct KilnDLDataType {
  /* 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2. */
  uint8_t code;
  uint8_t bits;
  /* Always 1. */
  uint16_t lanes;
} KilnDLDataType;
typedef struct KilnDLTensor {
  void* data;
  KilnDLDevice device;
  int32_t ndim;
  KilnDLDataType dtype;
  int64_t* shape;
  /* Strides in elements; NULL: contiguous. */
  int64_t* strides;
  uint64_t byte_offset;
} KilnDLTensor;

/* Runs the network like kiln_run. Refuses tensors of another dtype or shape, on another device, or
 * not contiguous. */
int kiln_run_tensors(KilnNetwork* network, const KilnDLTensor* const* inputs, int32_t num_inputs,
                     const KilnDLTensor* const* outputs, int32_t num_outputs);

/* Queues a run of a network for CUDA on a stream (a CUstream or cudaStream_t of the network's GPU;
 * NULL: the legacy default stream), and returns without waiting. Tensors must be in that GPU's
 * memory, and must stay as they are until the stream is done with the run; else as
 * kiln_run_tensors. Memory that is not aligned to 64 bytes is copied on the GPU.
 *
 * Runs on several streams wait for each other on the GPU as far as they share the network's own
 * memory. A stream that is being captured into a graph gets the kernels: call the network once
 * before, with memory of the same alignment, so that it allocates nothing. Such a graph must be
 * destroyed before the network, and its launches must not overlap other runs of the network. */
int kiln_run_on_stream(KilnNetwork* network, const KilnDLTensor* const* inputs, int32_t num_inputs,
                       const KilnDLTensor* const* outputs, int32_t num_outputs, void* stream);

/* Returns the device on which the network runs. Outputs in its memory are not copied. */
KilnDLDevice kiln_device(const KilnNetwork* network);

/* Zeros stand for the values in brackets. */
typedef struct KilnBenchOptions {
  /* sizeof(KilnBenchOptions) */
  size_t size;
  /* Runs that are not timed [3]. */
  int32_t warmup;
  /* Number of readings [10]. */
  int32_t repeat;
  /* Runs of one reading, back to back [1]. */
  int64_t number;
  /* Runs are added until a reading takes this long [0]. */
  double min_repeat_s;
} KilnBenchOptions;

/* Writes the seconds of one run, for each reading, to `seconds`, which has room for `capacity`.
 * Fails if there are more readings than that. On CUDA the GPU's clock measures, with inputs and
 * outputs in the GPU's memory. `inputs` is as for kiln_run; NULL: random inputs. Returns the number
 * of readings, or -1. */
int32_t kiln_bench(KilnNetwork* network, const KilnBenchOptions* options, const void* const* inputs,
                   int32_t num_inputs, double* seconds, int32_t capacity);

typedef struct KilnKernelInfo {
  const char* name;
  /* Workload key. */
  const char* workload;
  /* Source of the kernel's schedule: "tuned", "reused", "untuned". */
  const char* source;
  /* Id of the record; "": none. */
  const char* record;
  /* Cost by the record; 0: not known. */
  double expected_s;
  double flops;
  /* Bytes that the kernel must at least read and write. */
  double bytes;
} KilnKernelInfo;

int32_t kiln_num_kernels(const KilnNetwork* network);
int kiln_kernel_info(const KilnNetwork* network, int32_t index, KilnKernelInfo* info);
/* Writes the seconds of each kernel by itself, in order: the mean of `number` calls back to back.
 * `seconds` has room for `capacity`. Returns the number of kernels, or -1. */
int32_t kiln_profile(KilnNetwork* network, int64_t number, const void* const* inputs,
                     int32_t num_inputs, double* seconds, int32_t capacity);

typedef struct KilnMemoryUse {
  int64_t constants;
  int64_t arena;
  /* Copies of inputs and outputs that could not be used in place. */
  int64_t staging;
} KilnMemoryUse;
/* Waits for a call of the network that is running. */
void kiln_memory_use(const KilnNetwork* network, KilnMemoryUse* use);

#ifdef __cplusplus
}
#endif

#endif /* KILN_RUNTIME_KILN_RUNTIME_H_ */
