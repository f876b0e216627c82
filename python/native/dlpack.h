/* The parts of DLPack 1.3 that Python's objects show: capsules, and the table of functions that a type
 * has as __dlpack_c_exchange_api__. DLTensor is KilnDLTensor. */
#ifndef KILN_PYTHON_NATIVE_DLPACK_H_
#define KILN_PYTHON_NATIVE_DLPACK_H_

#include <stdint.h>

#include "runtime/kiln_runtime.h"

/* DLDeviceType */
enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13 };

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  /* An older table; NULL: none. */
  struct DLPackExchangeAPIHeader* prev_api;
} DLPackExchangeAPIHeader;

/* Functions of a library for its tensors. None waits for a stream. They return 0, or -1 with an
 * exception of Python. */
typedef struct {
  DLPackExchangeAPIHeader header;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object_no_sync;
  void* managed_tensor_to_py_object_no_sync;
  /* Describes a tensor as long as the caller holds it and Python does not run. May be NULL. */
  int (*dltensor_from_py_object_no_sync)(void* object, KilnDLTensor* out);
  /* The stream on which the library works now. */
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** stream);
} DLPackExchangeAPI;

#endif /* KILN_PYTHON_NATIVE_DLPACK_H_ */
