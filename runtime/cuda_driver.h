// The part of the CUDA driver API that Kiln uses, opened at run time. Neither the machine that
// builds nor the machine that runs needs a toolkit, and a machine without a driver gets an error.
//
// The declarations are ours; names, versions (_v2) and numbers are those of the driver's stable ABI
// since CUDA 9. The functions are in a table, so that tests can bring their own
// (cuda_driver_testing.h). They are thread-safe, as the driver's are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace kiln::runtime {

// 0 = success.
using CuResult = int;
using CuDeviceHandle = int;
// An address in device memory.
using CuPointer = uint64_t;
struct CuContextTag;
struct CuModuleTag;
struct CuFunctionTag;
struct CuStreamTag;
struct CuEventTag;
struct CuGraphTag;
struct CuGraphExecTag;
using CuContext = CuContextTag*;
using CuModule = CuModuleTag*;
using CuFunction = CuFunctionTag*;
using CuStream = CuStreamTag*;
using CuEvent = CuEventTag*;
using CuGraph = CuGraphTag*;
using CuGraphExec = CuGraphExecTag*;
// CUtensorMap
struct alignas(64) CuTensorMap {
  uint64_t words[16];
};
struct CuUuid {
  unsigned char bytes[16];
};

constexpr CuResult kCuOutOfMemory = 2;
constexpr CuResult kCuNotFound = 500;
constexpr CuResult kCuNotReady = 600;

// CUdevice_attribute
enum CuDeviceAttribute : int {
  kCuMaxThreadsPerBlock = 1,
  kCuMaxSharedMemoryPerBlock = 8,
  kCuWarpSize = 10,
  kCuMaxRegistersPerBlock = 12,
  kCuClockRateKhz = 13,
  kCuMultiprocessorCount = 16,
  kCuPciBus = 33,
  kCuPciDevice = 34,
  kCuMemoryClockRateKhz = 36,
  kCuMemoryBusWidthBits = 37,
  kCuL2CacheBytes = 38,
  kCuMaxThreadsPerMultiprocessor = 39,
  kCuPciDomain = 50,
  kCuComputeCapabilityMajor = 75,
  kCuComputeCapabilityMinor = 76,
  kCuMaxSharedMemoryPerMultiprocessor = 81,
  kCuMaxRegistersPerMultiprocessor = 82,
  kCuMaxSharedMemoryPerBlockOptin = 97,
  kCuMaxBlocksPerMultiprocessor = 106,
  kCuMaxAccessPolicyWindowBytes = 109,
  kCuReservedSharedMemoryPerBlock = 111,
};
// CUfunction_attribute
enum CuFunctionAttribute : int {
  kCuFunctionMaxThreadsPerBlock = 0,
  kCuFunctionSharedBytes = 1,
  kCuFunctionMaxDynamicSharedBytes = 8,
  kCuFunctionRequiredClusterWidth = 11,
  kCuFunctionNonPortableClusterAllowed = 14,
};
// CUlaunchAttribute
struct CuLaunchAttribute {
  int id;
  int padding = 0;
  // For a cluster: its blocks along x, y, z. For an access policy: a window. For others: 1 = yes.
  unsigned value[16] = {};
};
constexpr int kCuLaunchAccessPolicyWindow = 1;
constexpr int kCuLaunchClusterDimension = 4;
// The kernel may start before the work before it in its stream has ended, and waits by itself.
constexpr int kCuLaunchProgrammaticStreamSerialization = 6;
// CUaccessPolicyWindow: how the caches keep this memory.
struct CuAccessPolicyWindow {
  CuPointer begin;
  size_t bytes;
  // This share of the memory is kept as `hit` says, the rest as `miss` says.
  float hit_ratio;
  // CUaccessProperty
  int hit;
  int miss;
};
// The memory is the first to leave the cache.
constexpr int kCuAccessStreaming = 1;
// CUlaunchConfig. Without attributes, clusters are those that the kernel was compiled for.
struct CuLaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  CuStream stream;
  void* attributes;
  unsigned attribute_count;
};
// CUtensorMapDataType for elements of 1, 2 and 4 bytes, and the other enums of a CUtensorMap.
constexpr int kCuTensorMapUint8 = 0, kCuTensorMapUint16 = 1, kCuTensorMapUint32 = 2;
constexpr int kCuTensorMapNoInterleave = 0;
constexpr int kCuTensorMapSwizzleNone = 0, kCuTensorMapSwizzle32 = 1, kCuTensorMapSwizzle64 = 2,
              kCuTensorMapSwizzle128 = 3;
constexpr int kCuTensorMapPromoteL2To128 = 2, kCuTensorMapPromoteL2To256 = 3;
constexpr int kCuTensorMapZerosOutside = 0;
constexpr unsigned kCuContextBlockingSync = 4;
// The stream waits for the legacy default stream.
constexpr unsigned kCuStreamDefault = 0;
constexpr unsigned kCuStreamNonBlocking = 1;
constexpr unsigned kCuEventDefault = 0;
constexpr unsigned kCuEventDisableTiming = 2;
// CUpointer_attribute
constexpr int kCuPointerMemoryType = 2;
constexpr int kCuPointerDeviceOrdinal = 9;
constexpr unsigned kCuMemoryTypeDevice = 2;
constexpr int kCuCaptureThreadLocal = 1;
// CUstreamCaptureStatus
constexpr int kCuCaptureNone = 0;

// Arguments of X: member, symbol, parameters.
#define KILN_CUDA_FUNCTIONS(X)                                                                    \
  X(Init, "cuInit", (unsigned flags))                                                             \
  X(DriverGetVersion, "cuDriverGetVersion", (int* version))                                       \
  X(GetErrorName, "cuGetErrorName", (CuResult, const char** name))                                \
  X(GetErrorString, "cuGetErrorString", (CuResult, const char** text))                            \
  X(DeviceGetCount, "cuDeviceGetCount", (int* count))                                             \
  X(DeviceGet, "cuDeviceGet", (CuDeviceHandle*, int ordinal))                                     \
  X(DeviceGetName, "cuDeviceGetName", (char* name, int bytes, CuDeviceHandle))                    \
  X(DeviceGetUuid, "cuDeviceGetUuid", (CuUuid*, CuDeviceHandle))                                  \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t* bytes, CuDeviceHandle))                       \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int* value, int attribute, CuDeviceHandle))      \
  X(PrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2", (CuDeviceHandle, unsigned flags))        \
  X(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CuContext*, CuDeviceHandle))                   \
  X(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CuDeviceHandle))                          \
  X(CtxSetCurrent, "cuCtxSetCurrent", (CuContext))                                                \
  X(CtxPushCurrent, "cuCtxPushCurrent_v2", (CuContext))                                           \
  X(CtxPopCurrent, "cuCtxPopCurrent_v2", (CuContext*))                                            \
  X(CtxSynchronize, "cuCtxSynchronize", ())                                                       \
  X(ModuleLoadData, "cuModuleLoadData", (CuModule*, const void* image))                           \
  X(ModuleUnload, "cuModuleUnload", (CuModule))                                                   \
  X(ModuleGetFunction, "cuModuleGetFunction", (CuFunction*, CuModule, const char* name))          \
  X(FuncGetAttribute, "cuFuncGetAttribute", (int* value, int attribute, CuFunction))              \
  X(FuncSetAttribute, "cuFuncSetAttribute", (CuFunction, int attribute, int value))               \
  X(MemGetInfo, "cuMemGetInfo_v2", (size_t* free_bytes, size_t* total_bytes))                     \
  X(MemAlloc, "cuMemAlloc_v2", (CuPointer*, size_t bytes))                                        \
  X(MemFree, "cuMemFree_v2", (CuPointer))                                                         \
  X(MemAllocHost, "cuMemAllocHost_v2", (void**, size_t bytes))                                    \
  X(MemFreeHost, "cuMemFreeHost", (void*))                                                        \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CuPointer, const void*, size_t bytes, CuStream))    \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void*, CuPointer, size_t bytes, CuStream))          \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CuPointer, CuPointer from, size_t bytes, CuStream)) \
  X(PointerGetAttribute, "cuPointerGetAttribute", (void* value, int attribute, CuPointer))        \
  X(MemsetD8Async, "cuMemsetD8Async", (CuPointer, unsigned char value, size_t bytes, CuStream))   \
  X(StreamCreate, "cuStreamCreate", (CuStream*, unsigned flags))                                  \
  X(StreamDestroy, "cuStreamDestroy_v2", (CuStream))                                              \
  X(StreamSynchronize, "cuStreamSynchronize", (CuStream))                                         \
  X(StreamQuery, "cuStreamQuery", (CuStream))                                                     \
  X(StreamWaitEvent, "cuStreamWaitEvent", (CuStream, CuEvent, unsigned flags))                    \
  X(StreamBeginCapture, "cuStreamBeginCapture_v2", (CuStream, int mode))                          \
  X(StreamEndCapture, "cuStreamEndCapture", (CuStream, CuGraph*))                                 \
  X(StreamIsCapturing, "cuStreamIsCapturing", (CuStream, int* status))                            \
  X(GraphInstantiate, "cuGraphInstantiateWithFlags", (CuGraphExec*, CuGraph, uint64_t flags))     \
  X(GraphLaunch, "cuGraphLaunch", (CuGraphExec, CuStream))                                        \
  X(GraphExecDestroy, "cuGraphExecDestroy", (CuGraphExec))                                        \
  X(GraphDestroy, "cuGraphDestroy", (CuGraph))                                                    \
  X(EventCreate, "cuEventCreate", (CuEvent*, unsigned flags))                                     \
  X(EventDestroy, "cuEventDestroy_v2", (CuEvent))                                                 \
  X(EventRecord, "cuEventRecord", (CuEvent, CuStream))                                            \
  X(EventElapsedTime, "cuEventElapsedTime", (float* milliseconds, CuEvent start, CuEvent end))    \
  X(LaunchKernel, "cuLaunchKernel",                                                               \
    (CuFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,             \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream, void** parameters,      \
     void** extra))
// Only newer drivers have these functions; they are null if missing.
#define KILN_CUDA_OPTIONAL_FUNCTIONS(X)                                              \
  X(FuncGetParamInfo, "cuFuncGetParamInfo",                                          \
    (CuFunction, size_t index, size_t* offset, size_t* bytes))                       \
  X(OccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",                      \
    (int* clusters, CuFunction, const CuLaunchConfig*))                              \
  X(LaunchKernelEx, "cuLaunchKernelEx",                                              \
    (const CuLaunchConfig*, CuFunction, void** parameters, void** extra))            \
  X(TensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                  \
    (CuTensorMap*, int data_type, unsigned rank, CuPointer, const uint64_t* extents, \
     const uint64_t* strides, const unsigned* box, const unsigned* element_strides,  \
     int interleave, int swizzle, int promotion, int outside))

struct CudaDriver {
#define KILN_CUDA_DECLARE(member, symbol, parameters) CuResult(*member) parameters = nullptr;
  KILN_CUDA_FUNCTIONS(KILN_CUDA_DECLARE)
  KILN_CUDA_OPTIONAL_FUNCTIONS(KILN_CUDA_DECLARE)
#undef KILN_CUDA_DECLARE

  // Returns OK, or "cannot <what>: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was
  // encountered". ResourceExhausted if memory is short.
  Status Check(CuResult result, std::string_view what) const;
};

// Opens libcuda.so.1 and initializes it, once per process. FailedPrecondition if there is no
// driver, or one that is too old, or no GPU that it can use.
StatusOr<const CudaDriver*> LoadCudaDriver();

}  // namespace kiln::runtime
