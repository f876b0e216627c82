#include "runner/cuda_driver_testing.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runner/arguments.h"
#include "runner/compare.h"
#include "runner/cuda_kernels.h"

namespace kiln::runner {
namespace {

FakeCuda& Fake() { return FakeCuda::Get(); }

template <typename T>
T* Pointer(CuPointer pointer) {
  return reinterpret_cast<T*>(pointer);
}

struct Recorded {
  std::vector<std::function<void()>> calls;
};
Recorded* recording = nullptr;

void Execute(const std::string& name, FakeLaunch launch) {
  if (Fake().sticky != 0) return;
  Fake().launched.push_back(name);
  Fake().sticky = Fake().kernels.at(name).run(launch);
}

// The runner's own kernels, the simple way.
CuResult Largest(const FakeLaunch&) { return 0; }
CuResult Lead(const FakeLaunch&) { return 0; }

CuResult CompareAll(const FakeLaunch& launch) {
  Argument argument;
  argument.name = "x";
  argument.elements = FakeParameter<int64_t>(launch, 2);
  argument.shape = {argument.elements};
  argument.dtype = static_cast<DType>(FakeParameter<int>(launch, 3));
  const size_t element_bytes = static_cast<size_t>(DTypeBytes(argument.dtype));
  const size_t bytes = static_cast<size_t>(argument.elements) * element_bytes;
  const auto* got = Pointer<const std::byte>(FakeParameter<CuPointer>(launch, 0));
  const auto* want = Pointer<const std::byte>(FakeParameter<CuPointer>(launch, 1));
  v1::Tolerance tolerance;
  tolerance.set_absolute(FakeParameter<double>(launch, 4));
  tolerance.set_relative(FakeParameter<double>(launch, 5));
  auto* state = Pointer<CompareState>(FakeParameter<CuPointer>(launch, 6));
  const Comparison all = Compare(argument, {got, bytes}, {want, bytes}, tolerance);
  state->different = static_cast<uint64_t>(all.different);
  // max_error is worst / largest.
  const double one = 1;
  std::memcpy(&state->largest, &one, sizeof(one));
  std::memcpy(&state->worst, &all.max_error, sizeof(one));
  for (size_t at = 0; at < bytes && all.different > 0; at += element_bytes) {
    if (std::memcmp(got + at, want + at, element_bytes) == 0) continue;
    state->first = at / element_bytes;
    break;
  }
  return 0;
}

CuResult Checksum(const FakeLaunch& launch) {
  const auto* data = Pointer<const unsigned char>(FakeParameter<CuPointer>(launch, 0));
  uint64_t& sum = *Pointer<uint64_t>(FakeParameter<CuPointer>(launch, 2));
  for (int64_t i = 0; i < FakeParameter<int64_t>(launch, 1); ++i) sum = sum * 31 + data[i];
  return 0;
}

CuResult Guards(const FakeLaunch& launch) {
  const auto* before = Pointer<const unsigned char>(FakeParameter<CuPointer>(launch, 0));
  const auto* after = Pointer<const unsigned char>(FakeParameter<CuPointer>(launch, 1));
  const uint32_t canary = FakeParameter<uint32_t>(launch, 3);
  uint64_t& stray = *Pointer<uint64_t>(FakeParameter<CuPointer>(launch, 4));
  for (int64_t i = 0; i < FakeParameter<int64_t>(launch, 2); ++i) {
    stray += (before[i] != canary) + (after[i] != canary);
  }
  return 0;
}

int UsualAttribute(const FakeCuda::Gpu& gpu, int which) {
  if (const auto found = gpu.attributes.find(which); found != gpu.attributes.end()) {
    return found->second;
  }
  switch (which) {
    case kCuComputeCapabilityMajor:
      return gpu.major;
    case kCuMaxThreadsPerBlock:
      return 1024;
    case kCuMaxSharedMemoryPerBlock:
      return 49152;
    case kCuMaxSharedMemoryPerBlockOptin:
      return 232448;
    case kCuWarpSize:
      return 32;
    case kCuL2CacheBytes:
      return 1 << 20;
    case kCuMultiprocessorCount:
      return 132;
    case kCuMaxSharedMemoryPerMultiprocessor:
      return 233472;
    case kCuClockRateKhz:
      return 1'980'000;
    case kCuMemoryClockRateKhz:
      return 3'201'000;
    case kCuMemoryBusWidthBits:
      return 6016;
    default:
      return 0;
  }
}

FakeCuda::Kernel& KernelOf(CuFunction function) {
  return *reinterpret_cast<FakeCuda::Kernel*>(function);
}
std::string NameOf(CuFunction function) {
  for (auto& [name, kernel] : Fake().kernels) {
    if (&kernel == &KernelOf(function)) return name;
  }
  return "?";
}

template <typename Handle>
Handle SomeHandle() {
  static int target;
  return reinterpret_cast<Handle>(&target);
}

CuResult LaunchKernel(CuFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared_bytes, CuStream, void** parameters,
                      void**) {
  const std::string name = NameOf(function);
  const FakeLaunch launch{name, {gx, gy, gz}, {bx, by, bz}, shared_bytes, parameters};
  if (recording == nullptr) {
    Execute(name, launch);
    return Fake().sticky;
  }
  // The parameters are copied when the launch is recorded. All of ours have 8 bytes.
  std::vector<uint64_t> values;
  for (int i = 0; i < KernelOf(function).parameters; ++i) {
    values.push_back(*static_cast<uint64_t*>(parameters[i]));
  }
  recording->calls.push_back([=]() mutable {
    std::vector<void*> pointers;
    for (uint64_t& value : values) pointers.push_back(&value);
    FakeLaunch again = launch;
    again.parameters = pointers.data();
    Execute(name, again);
  });
  return 0;
}

void AddDevices(CudaDriver& d) {
  d.GetErrorName = [](CuResult, const char** name) { return *name = "CUDA_ERROR_FAKE", 0; };
  d.GetErrorString = [](CuResult, const char** text) { return *text = "a fake error", 0; };
  d.DeviceGetCount = [](int* count) { return *count = static_cast<int>(Fake().gpus.size()), 0; };
  d.DeviceGet = [](CuDeviceHandle* handle, int ordinal) { return *handle = ordinal, 0; };
  d.DeviceGetName = [](char* name, int bytes, CuDeviceHandle handle) {
    std::strncpy(name, Fake().gpus[handle].name.c_str(), bytes);
    return 0;
  };
  d.DeviceGetUuid = [](CuUuid* uuid, CuDeviceHandle handle) {
    std::memset(uuid, Fake().gpus[handle].uuid, sizeof(*uuid));
    return 0;
  };
  d.DeviceTotalMem = [](size_t* bytes, CuDeviceHandle) { return *bytes = Fake().free_bytes, 0; };
  d.DeviceGetAttribute = [](int* value, int which, CuDeviceHandle handle) {
    return *value = UsualAttribute(Fake().gpus[handle], which), 0;
  };
}

void AddContexts(CudaDriver& d) {
  d.PrimaryCtxSetFlags = [](CuDeviceHandle, unsigned) { return 0; };
  d.PrimaryCtxRetain = [](CuContext* c, CuDeviceHandle) {
    return *c = SomeHandle<CuContext>(), ++Fake().contexts, 0;
  };
  d.PrimaryCtxRelease = [](CuDeviceHandle) { return --Fake().contexts, 0; };
  d.CtxSetCurrent = [](CuContext) { return 0; };
  d.CtxSynchronize = [] { return Fake().sticky; };
}

void AddKernels(CudaDriver& d) {
  d.ModuleLoadData = [](CuModule* module, const void*) {
    *module = SomeHandle<CuModule>();
    if (Fake().load_result == 0) ++Fake().modules;
    return Fake().load_result;
  };
  d.ModuleUnload = [](CuModule) { return --Fake().modules, 0; };
  d.ModuleGetFunction = [](CuFunction* function, CuModule, const char* name) {
    const auto found = Fake().kernels.find(name);
    if (found == Fake().kernels.end()) return kCuNotFound;
    *function = reinterpret_cast<CuFunction>(&found->second);
    return 0;
  };
  d.FuncGetAttribute = [](int* value, int which, CuFunction function) {
    const auto& kernel = KernelOf(function);
    *value = which == kCuFunctionSharedBytes            ? kernel.static_shared_bytes
             : which == kCuFunctionRequiredClusterWidth ? kernel.cluster_width
                                                        : kernel.max_threads;
    return 0;
  };
  d.FuncSetAttribute = [](CuFunction function, int, int value) {
    return KernelOf(function).dynamic_shared_bytes = value, 0;
  };
  d.FuncGetParamInfo = [](CuFunction function, size_t index, size_t* offset, size_t* bytes) {
    *offset = 8 * index;
    *bytes = 8;
    return index < static_cast<size_t>(KernelOf(function).parameters) ? 0 : 1;
  };
  d.OccupancyMaxActiveClusters = [](int* clusters, CuFunction, const CuLaunchConfig* config) {
    *clusters = Fake().active_clusters;
    if (config->attribute_count == 0) return 0;
    const auto* attribute = static_cast<const CuLaunchAttribute*>(config->attributes);
    const auto found = Fake().active_clusters_of.find(attribute->value[0]);
    *clusters = found != Fake().active_clusters_of.end() ? found->second : 0;
    return 0;
  };
}

void AddMemory(CudaDriver& d) {
  d.MemGetInfo = [](size_t* free_bytes, size_t* total_bytes) {
    return *free_bytes = *total_bytes = Fake().free_bytes, 0;
  };
  d.MemAlloc = [](CuPointer* pointer, size_t bytes) {
    if (bytes > Fake().free_bytes) return kCuOutOfMemory;
    *pointer = reinterpret_cast<CuPointer>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    Fake().memory[*pointer] = bytes;
    return 0;
  };
  d.MemFree = [](CuPointer pointer) {
    if (Fake().memory.erase(pointer) != 1) return 1;
    std::free(Pointer<void>(pointer));
    return 0;
  };
  d.MemAllocHost = [](void** pointer, size_t bytes) {
    return *pointer = std::malloc(bytes), ++Fake().host_blocks, 0;
  };
  d.MemFreeHost = [](void* pointer) { return std::free(pointer), --Fake().host_blocks, 0; };
  d.MemcpyHtoDAsync = [](CuPointer to, const void* from, size_t bytes, CuStream) {
    if (Fake().sticky == 0) std::memcpy(Pointer<void>(to), from, bytes);
    return Fake().sticky;
  };
  d.MemcpyDtoHAsync = [](void* to, CuPointer from, size_t bytes, CuStream) {
    if (Fake().sticky == 0) std::memcpy(to, Pointer<void>(from), bytes);
    return Fake().sticky;
  };
  d.MemsetD8Async = [](CuPointer to, unsigned char value, size_t bytes, CuStream) {
    std::memset(Pointer<void>(to), value, bytes);
    return Fake().sticky;
  };
}

void AddStreams(CudaDriver& d) {
  d.StreamCreate = [](CuStream* s, unsigned) { return *s = SomeHandle<CuStream>(), 0; };
  d.StreamDestroy = [](CuStream) { return 0; };
  d.StreamSynchronize = [](CuStream) { return ++Fake().waits, Fake().sticky; };
  d.StreamQuery = [](CuStream) { return ++Fake().waits, Fake().sticky; };
}

void AddGraphs(CudaDriver& d) {
  d.StreamBeginCapture = [](CuStream, int) { return recording = new Recorded, 0; };
  d.StreamEndCapture = [](CuStream, CuGraph* graph) {
    *graph = reinterpret_cast<CuGraph>(std::exchange(recording, nullptr));
    return 0;
  };
  d.GraphInstantiate = [](CuGraphExec* exec, CuGraph graph, uint64_t) {
    *exec = reinterpret_cast<CuGraphExec>(new Recorded(*reinterpret_cast<Recorded*>(graph)));
    return 0;
  };
  d.GraphLaunch = [](CuGraphExec exec, CuStream) {
    ++Fake().graph_launches;
    for (auto& call : reinterpret_cast<Recorded*>(exec)->calls) call();
    return Fake().sticky;
  };
  d.GraphExecDestroy = [](CuGraphExec g) { return delete reinterpret_cast<Recorded*>(g), 0; };
  d.GraphDestroy = [](CuGraph g) { return delete reinterpret_cast<Recorded*>(g), 0; };
}

void AddEvents(CudaDriver& d) {
  d.EventCreate = [](CuEvent* event, unsigned) { return *event = SomeHandle<CuEvent>(), 0; };
  d.EventDestroy = [](CuEvent) { return 0; };
  d.EventRecord = [](CuEvent, CuStream) { return Fake().sticky; };
  d.EventElapsedTime = [](float* ms, CuEvent, CuEvent) { return *ms = 2, 0; };
}

CudaDriver MakeDriver() {
  CudaDriver d;
  AddDevices(d);
  AddContexts(d);
  AddKernels(d);
  AddMemory(d);
  AddStreams(d);
  AddGraphs(d);
  AddEvents(d);
  d.LaunchKernel = LaunchKernel;
  return d;
}

}  // namespace

FakeCuda& FakeCuda::Get() {
  static FakeCuda fake;
  return fake;
}

const CudaDriver& FakeCuda::Driver() {
  static const CudaDriver driver = MakeDriver();
  return driver;
}

void FakeCuda::Reset() {
  for (const auto& [pointer, bytes] : memory) std::free(Pointer<void>(pointer));
  *this = FakeCuda();
  kernels["kiln_largest"] = {.run = Largest};
  kernels["kiln_compare"] = {.run = CompareAll};
  kernels["kiln_checksum"] = {.run = Checksum};
  kernels["kiln_guards"] = {.run = Guards};
  kernels["kiln_lead_in"] = {.run = Lead};
}

}  // namespace kiln::runner
