#include "runtime/cuda_driver_testing.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

namespace kiln::runtime {
namespace {

FakeCuda& Fake() { return FakeCuda::Get(); }

template <typename T>
T* Pointer(CuPointer pointer) {
  return reinterpret_cast<T*>(pointer);
}

// The calls after which a stream's next call runs: the last of its own kernels, or those of an
// event that it waits for.
using Frontier = std::vector<size_t>;

struct Recorded {
  struct Call {
    std::function<void()> run;
    Frontier after;
  };
  std::vector<Call> calls;
  CuStream origin = nullptr;
  // The streams that take part.
  std::map<CuStream, Frontier> streams;
  std::map<CuEvent, Frontier> events;
};
Recorded* recording = nullptr;

bool IsRecorded(CuStream stream) {
  return recording != nullptr && recording->streams.contains(stream);
}

void Record(CuStream stream, std::function<void()> run) {
  Frontier& frontier = recording->streams[stream];
  recording->calls.push_back({std::move(run), frontier});
  frontier = {recording->calls.size() - 1};
}

// Returns whether the origin's stream comes after all calls.
bool IsJoined(const Recorded& graph) {
  std::vector<bool> seen(graph.calls.size());
  Frontier open = graph.streams.at(graph.origin);
  while (!open.empty()) {
    const size_t call = open.back();
    open.pop_back();
    if (seen[call]) continue;
    seen[call] = true;
    open.insert(open.end(), graph.calls[call].after.begin(), graph.calls[call].after.end());
  }
  return std::find(seen.begin(), seen.end(), false) == seen.end();
}

void RunLastFirst(const Recorded& graph) {
  std::vector<bool> done(graph.calls.size());
  const auto ready = [&](size_t call) {
    const Frontier& after = graph.calls[call].after;
    return !done[call] &&
           std::all_of(after.begin(), after.end(), [&](size_t i) { return done[i]; });
  };
  for (size_t left = graph.calls.size(); left > 0; --left) {
    size_t call = graph.calls.size() - 1;
    while (!ready(call)) --call;
    graph.calls[call].run();
    done[call] = true;
  }
}

constexpr CuResult kCuInvalidValue = 1;
constexpr CuResult kCuCaptureUnjoined = 904;
constexpr CuResult kCuCaptureIsolation = 905;
constexpr CuResult kCuCaptureUnsupported = 900;

void Execute(const std::string& name, FakeLaunch launch) {
  if (Fake().sticky != 0) return;
  Fake().launched.push_back(name);
  Fake().sticky = Fake().kernels.at(name).run(launch);
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

// Returns another handle each time.
template <typename Handle>
Handle NewHandle() {
  static uintptr_t last = 0;
  return reinterpret_cast<Handle>(++last);
}

CuResult LaunchKernel(CuFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared_bytes, CuStream stream,
                      void** parameters, void**) {
  const std::string name = NameOf(function);
  const FakeLaunch launch{name, {gx, gy, gz}, {bx, by, bz}, shared_bytes, parameters};
  if (!IsRecorded(stream)) {
    Execute(name, launch);
    return Fake().sticky;
  }
  // The parameters are copied when the launch is recorded.
  const FakeCuda::Kernel& kernel = KernelOf(function);
  std::vector<uint64_t> values;
  std::vector<CuTensorMap> maps;
  for (int i = 0; i < kernel.parameters; ++i)
    values.push_back(*static_cast<uint64_t*>(parameters[i]));
  for (int i = 0; i < kernel.tensor_maps; ++i)
    maps.push_back(*static_cast<CuTensorMap*>(parameters[kernel.parameters + i]));
  Record(stream, [=]() mutable {
    std::vector<void*> pointers;
    for (uint64_t& value : values) pointers.push_back(&value);
    for (CuTensorMap& map : maps) pointers.push_back(&map);
    FakeLaunch again = launch;
    again.parameters = pointers.data();
    Execute(name, again);
  });
  return 0;
}

CuResult LaunchKernelEx(const CuLaunchConfig* config, CuFunction function, void** parameters,
                        void** extra) {
  const std::span attributes(static_cast<const CuLaunchAttribute*>(config->attributes),
                             config->attribute_count);
  for (const CuLaunchAttribute& attribute : attributes) {
    if (attribute.id == kCuLaunchProgrammaticStreamSerialization && attribute.value[0] == 1) {
      ++Fake().early_launches;
    } else if (attribute.id == kCuLaunchAccessPolicyWindow) {
      std::memcpy(&Fake().windows.emplace_back(), attribute.value, sizeof(CuAccessPolicyWindow));
    } else {
      return kCuInvalidValue;
    }
  }
  return LaunchKernel(function, config->grid[0], config->grid[1], config->grid[2], config->block[0],
                      config->block[1], config->block[2], config->shared_bytes, config->stream,
                      parameters, extra);
}

// The words are the array's address, the type, dimensions, extents, strides and the box.
CuResult EncodeTiled(CuTensorMap* map, int type, unsigned rank, CuPointer begin,
                     const uint64_t* extents, const uint64_t* strides, const unsigned* box,
                     const unsigned*, int, int swizzle, int, int) {
  ++Fake().encoded_maps;
  *map = {};
  uint64_t* word = map->words;
  *word++ = begin;
  *word++ = static_cast<uint64_t>(type) << 8 | static_cast<uint64_t>(swizzle);
  *word++ = rank;
  word = std::copy_n(extents, rank, word);
  word = std::copy_n(strides, rank - 1, word);
  std::copy_n(box, std::min<size_t>(rank, map->words + 16 - word), word);
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
  d.CtxPushCurrent = [](CuContext) { return ++Fake().pushed_contexts, 0; };
  d.CtxPopCurrent = [](CuContext*) { return --Fake().pushed_contexts, 0; };
  d.CtxSynchronize = [] { return ++Fake().context_waits, Fake().sticky; };
}

void AddKernels(CudaDriver& d) {
  d.ModuleLoadData = [](CuModule* module, const void*) {
    *module = SomeHandle<CuModule>();
    ++Fake().module_loads;
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
    const FakeCuda::Kernel& kernel = KernelOf(function);
    *bytes = index < static_cast<size_t>(kernel.parameters) ? 8 : sizeof(CuTensorMap);
    return index < static_cast<size_t>(kernel.parameters + kernel.tensor_maps) ? 0 : 1;
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
    ++Fake().allocations;
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
  d.MemcpyDtoDAsync = [](CuPointer to, CuPointer from, size_t bytes, CuStream stream) {
    if (IsRecorded(stream)) {
      Record(stream, [=] { std::memcpy(Pointer<void>(to), Pointer<void>(from), bytes); });
      return 0;
    }
    if (Fake().device_copy_result != 0) return Fake().device_copy_result;
    if (Fake().sticky == 0) std::memcpy(Pointer<void>(to), Pointer<void>(from), bytes);
    return Fake().sticky;
  };
  d.PointerGetAttribute = [](void* value, int attribute, CuPointer pointer) {
    const auto above = Fake().memory.upper_bound(pointer);
    if (above == Fake().memory.begin()) return 1;
    const auto& [start, bytes] = *std::prev(above);
    // The pointer is host memory that the driver does not know.
    if (pointer >= start + bytes) return 1;
    if (attribute == kCuPointerMemoryType) {
      *static_cast<unsigned*>(value) = kCuMemoryTypeDevice;
    } else {
      *static_cast<int*>(value) = Fake().memory_ordinal;
    }
    return 0;
  };
  d.MemsetD8Async = [](CuPointer to, unsigned char value, size_t bytes, CuStream) {
    std::memset(Pointer<void>(to), value, bytes);
    return Fake().sticky;
  };
}

void AddStreams(CudaDriver& d) {
  d.StreamCreate = [](CuStream* s, unsigned) {
    return *s = NewHandle<CuStream>(), ++Fake().streams, 0;
  };
  d.StreamDestroy = [](CuStream) { return --Fake().streams, 0; };
  d.StreamWaitEvent = [](CuStream stream, CuEvent event, unsigned) {
    // A stream that is recorded cannot wait for what is outside of its recording.
    if (IsRecorded(stream) && !recording->events.contains(event)) return kCuCaptureIsolation;
    if (recording == nullptr || !recording->events.contains(event)) return ++Fake().event_waits, 0;
    const Frontier& after = recording->events[event];
    Frontier& frontier = recording->streams[stream];
    frontier.insert(frontier.end(), after.begin(), after.end());
    return 0;
  };
  d.StreamSynchronize = [](CuStream) { return ++Fake().waits, Fake().sticky; };
  d.StreamQuery = [](CuStream) { return ++Fake().waits, Fake().sticky; };
}

CuResult EndCapture(CuStream stream, CuGraph* graph) {
  Recorded* recorded = std::exchange(recording, nullptr);
  *graph = nullptr;
  if (recorded == nullptr || recorded->origin != stream || !IsJoined(*recorded)) {
    delete recorded;
    return kCuCaptureUnjoined;
  }
  *graph = reinterpret_cast<CuGraph>(recorded);
  return 0;
}

void AddGraphs(CudaDriver& d) {
  d.StreamBeginCapture = [](CuStream stream, int) {
    recording = new Recorded;
    recording->origin = stream;
    recording->streams[stream] = {};
    return 0;
  };
  d.StreamEndCapture = EndCapture;
  d.StreamIsCapturing = [](CuStream stream, int* status) {
    return *status = IsRecorded(stream) ? 1 : kCuCaptureNone, 0;
  };
  d.GraphInstantiate = [](CuGraphExec* exec, CuGraph graph, uint64_t) {
    ++Fake().graphs;
    *exec = reinterpret_cast<CuGraphExec>(new Recorded(*reinterpret_cast<Recorded*>(graph)));
    return 0;
  };
  d.GraphLaunch = [](CuGraphExec exec, CuStream stream) {
    if (IsRecorded(stream)) return kCuCaptureUnsupported;
    ++Fake().graph_launches;
    RunLastFirst(*reinterpret_cast<Recorded*>(exec));
    return Fake().sticky;
  };
  d.GraphExecDestroy = [](CuGraphExec g) { return delete reinterpret_cast<Recorded*>(g), 0; };
  d.GraphDestroy = [](CuGraph g) { return delete reinterpret_cast<Recorded*>(g), 0; };
}

void AddEvents(CudaDriver& d) {
  d.EventCreate = [](CuEvent* event, unsigned) {
    return *event = NewHandle<CuEvent>(), ++Fake().events, 0;
  };
  d.EventDestroy = [](CuEvent) { return --Fake().events, 0; };
  d.EventRecord = [](CuEvent event, CuStream stream) {
    if (IsRecorded(stream)) {
      recording->events[event] = recording->streams[stream];
    } else {
      ++Fake().event_records;
      Fake().recorded_ms[event] = Fake().now_ms;
    }
    return Fake().sticky;
  };
  d.EventElapsedTime = [](float* ms, CuEvent start, CuEvent end) {
    *ms = 2;
    if (Fake().keeps_time) {
      *ms = static_cast<float>(Fake().recorded_ms[end] - Fake().recorded_ms[start]);
      return 0;
    }
    if (Fake().elapsed_ms.empty()) return 0;
    *ms = Fake().elapsed_ms.front();
    Fake().elapsed_ms.pop_front();
    return 0;
  };
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
  d.LaunchKernelEx = LaunchKernelEx;
  d.TensorMapEncodeTiled = EncodeTiled;
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
}

}  // namespace kiln::runtime
