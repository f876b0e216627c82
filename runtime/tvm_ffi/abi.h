/* The part of the C ABI of apache-tvm-ffi 0.1 (tvm/ffi/c_api.h, tvm/ffi/extra/c_env_api.h) that a
 * library of kernels needs. DLTensor is KilnDLTensor. */
#ifndef KILN_RUNTIME_TVM_FFI_ABI_H_
#define KILN_RUNTIME_TVM_FFI_ABI_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/kiln_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of TvmFfiAny.type_index. */
enum {
  kTvmFfiNone = 0,
  /* A KilnDLTensor* of the caller's. */
  kTvmFfiDLTensorPtr = 7,
  kTvmFfiStaticObjectBegin = 64,
  kTvmFfiFunction = 68,
  /* An object whose header is followed by a KilnDLTensor. */
  kTvmFfiTensor = 70,
  kTvmFfiArray = 71
};

/* Header of an object, which counts its references. */
typedef struct TvmFfiObject {
  uint64_t combined_ref_count;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void* self, int flags);
} TvmFfiObject;

typedef struct TvmFfiAny {
  int32_t type_index;
  uint32_t zero_padding;
  union {
    int64_t v_int64;
    void* v_ptr;
    TvmFfiObject* v_obj;
  };
} TvmFfiAny;

typedef struct TvmFfiByteArray {
  const char* data;
  size_t size;
} TvmFfiByteArray;

/* A function of a library, exported as __tvm_ffi_NAME. Returns 0, or -1 after it has raised an
 * error. */
typedef int (*TvmFfiSafeCall)(void* handle, const TvmFfiAny* args, int32_t num_args,
                              TvmFfiAny* result);

/* Functions of libtvm_ffi.so. */
typedef void (*TvmFfiErrorSetRaisedFromCStr)(const char* kind, const char* message);
typedef void* (*TvmFfiEnvGetStream)(int32_t device_type, int32_t device_id);
typedef int (*TvmFfiEnvTensorAlloc)(KilnDLTensor* prototype, void** out);
typedef int (*TvmFfiFunctionGetGlobal)(const TvmFfiByteArray* name, void** out);
typedef int (*TvmFfiFunctionCall)(void* function, TvmFfiAny* args, int32_t num_args,
                                  TvmFfiAny* result);
typedef int (*TvmFfiObjectDecRef)(void* object);
typedef int (*TvmFfiStringFromByteArray)(const TvmFfiByteArray* input, TvmFfiAny* out);

#ifdef __cplusplus
}
#endif

#endif /* KILN_RUNTIME_TVM_FFI_ABI_H_ */
