// Networks of cubins, which run on an NVIDIA GPU. All kernels are one CUDA graph, with branches
// beside each other if that is faster.
#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"
#include "runtime/cuda_module.h"
#include "runtime/executor_options.h"
#include "runtime/kernel_order.h"
#include "runtime/network_device.h"
#include "runtime/network_device_kinds.h"

namespace kiln::runtime {
namespace {

// Number of sets of pointers whose graphs are kept, because callers alternate between a few sets.
constexpr size_t kMaxGraphs = 8;
// Most kernels that are launched one by one into a caller's stream. More kernels are a graph, whose
// launch takes 5 us, and whose recording takes some 50 us for each new set of pointers.
constexpr size_t kMaxLaunched = 3;
// Limits of the trial that decides whether branches run beside each other.
constexpr int kMaxStreams = 4;
constexpr int kPlanReadings = 3;
constexpr double kPlanReadingS = 2e-3;
// Alignment of the memory that the driver gives.
constexpr int64_t kDriverAlignment = 256;

// The GPU's primary context. The CUDA runtime, and so PyTorch, uses the same context, so their
// pointers are valid here.
class GpuContext {
 public:
  static StatusOr<std::unique_ptr<GpuContext>> Open(const CudaDriver& driver, const CudaGpu& gpu) {
    std::unique_ptr<GpuContext> context(new GpuContext(driver, gpu));
    KILN_RETURN_IF_ERROR(driver.Check(driver.PrimaryCtxRetain(&context->context_, gpu.handle),
                                      fmt::format("make a context on GPU {}", gpu.ordinal)));
    return context;
  }
  ~GpuContext() {
    if (context_ != nullptr) driver_.PrimaryCtxRelease(gpu_.handle);
  }

  void Enter() const { driver_.CtxPushCurrent(context_); }
  // The calling thread's own context comes back.
  void Leave() const {
    CuContext popped = nullptr;
    driver_.CtxPopCurrent(&popped);
  }

 private:
  GpuContext(const CudaDriver& driver, const CudaGpu& gpu) : driver_(driver), gpu_(gpu) {}
  const CudaDriver& driver_;
  const CudaGpu& gpu_;
  CuContext context_ = nullptr;
};

// Owns a handle that belongs to a context. The owner destroys the handle while that context is
// current.
template <typename Handle, CuResult (*CudaDriver::*Destroy)(Handle)>
class Owned {
 public:
  Owned(const CudaDriver& driver, Handle handle) : driver_(&driver), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : driver_(other.driver_), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (handle_ != Handle{}) (driver_->*Destroy)(handle_);
  }
  Handle get() const { return handle_; }

 private:
  const CudaDriver* driver_;
  Handle handle_;
};
using Stream = Owned<CuStream, &CudaDriver::StreamDestroy>;
using Event = Owned<CuEvent, &CudaDriver::EventDestroy>;
using GraphExec = Owned<CuGraphExec, &CudaDriver::GraphExecDestroy>;

Status CheckThisGpu(const NetworkTarget& target, const CudaGpu& gpu) {
  std::string_view wanted = target.arch;
  // GPUs of sm_90 run code for sm_90a.
  if (wanted.ends_with('a')) wanted.remove_suffix(1);
  if (wanted == ArchOf(gpu)) return OkStatus();
  return FailedPrecondition(
      "the file was compiled for GPUs of {} ({}), and GPU {} here is {} of {}: compile it again "
      "for "
      "'cuda -arch={}'",
      target.arch, target.device.empty() ? target.text : target.device, gpu.ordinal, gpu.name,
      ArchOf(gpu), ArchOf(gpu));
}

StatusOr<CudaGpu> FindGpu(const CudaDriver& driver, int ordinal) {
  KILN_ASSIGN_OR_RETURN(const std::vector<CudaGpu> gpus, ListCudaGpus(driver));
  if (ordinal >= 0 && ordinal < static_cast<int>(gpus.size())) {
    return gpus[static_cast<size_t>(ordinal)];
  }
  return NotFound("there is no GPU {}, expected 0 to {}", ordinal, gpus.size() - 1);
}

class CudaDevice : public NetworkDevice {
 public:
  // `network` outlives the device. 0 streams mean the faster number of streams.
  CudaDevice(const Network& network, const CudaDriver& driver, const CudaGpu& gpu, int streams)
      : network_(network), driver_(driver), gpu_(gpu), streams_(streams) {}
  ~CudaDevice() override;
  Status Open();

  int number() const override { return gpu_.ordinal; }
  void Enter() override { context_->Enter(); }
  void Leave() override { context_->Leave(); }

  int64_t alignment_bytes() const override { return kDriverAlignment; }
  StatusOr<void*> Allocate(int64_t bytes, std::string_view purpose) override;
  void Free(void* memory, int64_t) override { driver_.MemFree(AddressOf(memory)); }
  StatusOr<bool> Reaches(const void* pointer, std::string_view tensor) const override;
  Status Copy(void* to, const void* from, int64_t bytes, CopyPath path) override;

  Status LoadBinary(std::string_view binary) override;
  Status LoadKernel(const NetworkKernel& kernel) override;
  Status Prepare(const KernelCalls& calls) override;
  bool wants_trial() const override { return streams_ == 0 && plan_.streams > 1; }
  Status Choose(const KernelCalls& calls) override;

  Status BeginRun(std::optional<void*> stream) override;
  Status EndQueuedRun(bool shares_memory) override;
  void WaitForQueuedRuns() override {
    if (was_queued_) driver_.CtxSynchronize();
  }
  Status LaunchAll(const KernelCalls& calls) override;
  Status Synchronize(std::string_view what) override;
  StatusOr<double> TimeRuns(const KernelCalls& calls, int64_t number) override;
  StatusOr<std::vector<double>> TimeKernels(const KernelCalls& calls, int64_t number) override;
  StatusOr<std::vector<double>> TimeKernelsInRuns(const KernelCalls&, int64_t) override {
    return Unimplemented("a GPU's kernels are timed by themselves alone");
  }
  StatusOr<std::vector<KernelSpan>> TraceRun(const KernelCalls& calls) override;

 private:
  struct EncodedMap {
    // Address of the array in the encoded map; none before the first launch.
    std::optional<CuPointer> begin = {};
    CuTensorMap map = {};
  };
  struct Launching {
    CudaLaunch launch;
    // Indices into the kernel's arguments.
    std::vector<uint32_t> args;
    std::vector<TensorMap> tensor_maps;
    bool waits_for_previous = false;
    // The parameters of the last launch, by tensor map. Arguments mostly stay where they are.
    std::vector<EncodedMap> encoded;
  };
  struct Kernel {
    std::vector<Launching> launches;
    // The part of its constants that is streamed.
    CudaMemory streamed;
  };
  // A graph for the caller's memory at these addresses.
  struct Graph {
    std::vector<void*> callers;
    GraphExec exec;
  };

  static CuPointer AddressOf(const void* memory) { return reinterpret_cast<CuPointer>(memory); }

  Status Check(CuResult result, std::string_view what) const { return driver_.Check(result, what); }
  StatusOr<Stream> MakeStream(unsigned flags) const;
  StatusOr<Event> MakeEvent(unsigned flags) const;
  Status MakeStreamAndEvents();
  void StreamConstants(const KernelCalls& calls);
  Status UsePlan(int most_streams);
  StatusOr<double> TimePlan(const KernelCalls& calls);

  // `follows_kernel` says that the last work in the stream is a kernel, and that this kernel waits
  // for nothing else.
  Status LaunchKernel(Kernel& kernel, std::span<void* const> args, CuStream stream,
                      bool follows_kernel) const;
  Status EncodeMaps(Launching& launching, std::span<const CuPointer> addresses) const;
  Status RecordAll(const KernelCalls& calls);
  Status LaunchOneByOne(const KernelCalls& calls, CuStream stream);
  StatusOr<GraphExec> Record(const std::function<Status()>& queue) const;
  StatusOr<CuGraphExec> CurrentGraph(const KernelCalls& calls);
  StatusOr<double> TimeGraph(CuGraphExec graph, int64_t number);

  const Network& network_;
  const CudaDriver& driver_;
  const CudaGpu gpu_;
  const int streams_;
  std::unique_ptr<GpuContext> context_;
  std::vector<std::unique_ptr<CudaModule>> modules_;
  std::vector<Kernel> kernels_;
  StreamPlan plan_;
  // This stream waits for the legacy default stream.
  std::optional<Stream> run_stream_;
  // These streams do not wait for it, so that other threads do not disturb a recording.
  std::vector<Stream> record_streams_;
  // One event for each kernel that another one waits for.
  std::vector<Event> kernel_events_;
  // Index of each kernel's event in kernel_events_.
  std::vector<size_t> event_of_;
  // The stream of this run's copies and launches.
  CuStream stream_ = nullptr;
  // True: the stream is a caller's.
  bool is_queued_ = false;
  // True: the caller records the stream into a graph.
  bool is_recorded_ = false;
  // True: there was a run in a stream of a caller's.
  bool was_queued_ = false;
  // The end of the last run that was queued; none before the first one.
  std::optional<Event> queued_;
  // The start of a recording.
  std::optional<Event> fork_;
  // Start and end.
  std::vector<Event> clock_;
  // The graph that was used last comes first.
  std::list<Graph> graphs_;
};

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  const DeviceScope scope(*this);
  graphs_.clear();
  clock_.clear();
  queued_.reset();
  fork_.reset();
  kernel_events_.clear();
  record_streams_.clear();
  run_stream_.reset();
  modules_.clear();
}

StatusOr<Stream> CudaDevice::MakeStream(unsigned flags) const {
  CuStream stream = nullptr;
  KILN_RETURN_IF_ERROR(Check(driver_.StreamCreate(&stream, flags), "make a stream"));
  return Stream(driver_, stream);
}

StatusOr<Event> CudaDevice::MakeEvent(unsigned flags) const {
  CuEvent event = nullptr;
  KILN_RETURN_IF_ERROR(Check(driver_.EventCreate(&event, flags), "make an event"));
  return Event(driver_, event);
}

StatusOr<void*> CudaDevice::Allocate(int64_t bytes, std::string_view purpose) {
  CuPointer block = 0;
  KILN_RETURN_IF_ERROR(
      Check(driver_.MemAlloc(&block, static_cast<size_t>(bytes)),
            fmt::format("allocate {} bytes of GPU memory for {}", bytes, purpose)));
  return reinterpret_cast<void*>(block);
}

// Memory that the driver does not know belongs to the host.
StatusOr<bool> CudaDevice::Reaches(const void* pointer, std::string_view tensor) const {
  const CuPointer address = AddressOf(pointer);
  unsigned type = 0;
  int ordinal = 0;
  if (driver_.PointerGetAttribute(&type, kCuPointerMemoryType, address) != 0) return false;
  if (type != kCuMemoryTypeDevice) return false;
  KILN_RETURN_IF_ERROR(
      Check(driver_.PointerGetAttribute(&ordinal, kCuPointerDeviceOrdinal, address),
            "look at a pointer"));
  if (ordinal == gpu_.ordinal) return true;
  return InvalidArgument("the memory of '{}' is on GPU {}, and the network on GPU {}", tensor,
                         ordinal, gpu_.ordinal);
}

Status CudaDevice::Copy(void* to, const void* from, int64_t bytes, CopyPath path) {
  const auto size = static_cast<size_t>(bytes);
  const auto queue = [&] {
    switch (path) {
      case CopyPath::kToDevice:
        return driver_.MemcpyHtoDAsync(AddressOf(to), from, size, stream_);
      case CopyPath::kOnDevice:
        return driver_.MemcpyDtoDAsync(AddressOf(to), AddressOf(from), size, stream_);
      default:
        return driver_.MemcpyDtoHAsync(to, AddressOf(from), size, stream_);
    }
  };
  return Check(queue(), "copy memory");
}

Status CudaDevice::LoadBinary(std::string_view binary) {
  KILN_ASSIGN_OR_RETURN(auto module, CudaModule::Load(driver_, gpu_, binary));
  modules_.push_back(std::move(module));
  return OkStatus();
}

Status CudaDevice::LoadKernel(const NetworkKernel& from) {
  Kernel kernel;
  for (const NetworkLaunch& launch : from.launches) {
    CudaLaunchShape shape{.dynamic_shared_bytes = launch.dynamic_shared_bytes,
                          .cluster = launch.cluster};
    std::copy_n(launch.grid, 3, shape.grid);
    std::copy_n(launch.block, 3, shape.block);
    const CudaModule& module = *modules_[static_cast<size_t>(from.binary)];
    std::vector<size_t> parameters(launch.args.size(), sizeof(CuPointer));
    parameters.resize(parameters.size() + launch.tensor_maps.size(), sizeof(CuTensorMap));
    KILN_ASSIGN_OR_RETURN(CudaLaunch prepared, module.Prepare(launch.symbol, shape, parameters));
    kernel.launches.push_back({std::move(prepared), launch.args, launch.tensor_maps,
                               launch.waits_for_previous,
                               std::vector<EncodedMap>(launch.tensor_maps.size())});
  }
  kernels_.push_back(std::move(kernel));
  return OkStatus();
}

// A run reads each weight once. If the weights do not all fit into the L2 cache, the last run's
// weights have left it before they are read again, and until then they push out the data between
// the kernels. So each kernel makes its own largest constant the first to leave the cache. On an
// H200 (resnet-18, 45 MiB of weights in a cache of 60 MiB) a run takes 206.0 instead of 212.0 us.
// Networks with few weights, or with so many that hardly any stays, do not change.
void CudaDevice::StreamConstants(const KernelCalls& calls) {
  if (network_.constants_bytes <= gpu_.l2_bytes / 2) return;
  // Drivers that do not know the attribute leave the value as it is.
  int most = 0;
  if (driver_.DeviceGetAttribute(&most, kCuMaxAccessPolicyWindowBytes, gpu_.handle) != 0) most = 0;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    CudaMemory& streamed = kernels_[k].streamed;
    for (size_t i = 0; i < calls.args[k].size(); ++i) {
      const Region region = RegionOf(network_, network_.kernels[k].args[i].buffer);
      if (network_.buffers[static_cast<size_t>(region.root)].place != Place::kConstant) continue;
      const auto bytes = static_cast<size_t>(std::min<int64_t>(region.bytes, most));
      if (bytes > streamed.bytes) streamed = {AddressOf(calls.args[k][i]), bytes};
    }
  }
}

Status CudaDevice::UsePlan(int most_streams) {
  plan_ = PlanStreams(network_, most_streams);
  record_streams_.clear();
  kernel_events_.clear();
  for (int i = 0; i < plan_.streams; ++i) {
    KILN_ASSIGN_OR_RETURN(Stream stream, MakeStream(kCuStreamNonBlocking));
    record_streams_.push_back(std::move(stream));
  }
  event_of_.assign(kernels_.size(), 0);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (!plan_.steps[k].awaited) continue;
    KILN_ASSIGN_OR_RETURN(Event event, MakeEvent(kCuEventDisableTiming));
    event_of_[k] = kernel_events_.size();
    kernel_events_.push_back(std::move(event));
  }
  return OkStatus();
}

// Returns the seconds of a run.
StatusOr<double> CudaDevice::TimePlan(const KernelCalls& calls) {
  KILN_ASSIGN_OR_RETURN(const GraphExec graph, Record([&] { return RecordAll(calls); }));
  KILN_ASSIGN_OR_RETURN(const double first_s, TimeGraph(graph.get(), 1));
  const auto runs =
      static_cast<int64_t>(std::clamp(kPlanReadingS / std::max(first_s, 1e-9), 1.0, 20.0));
  double best_s = first_s;
  for (int reading = 0; reading < kPlanReadings; ++reading) {
    KILN_ASSIGN_OR_RETURN(const double all_s, TimeGraph(graph.get(), runs));
    best_s = std::min(best_s, all_s / static_cast<double>(runs));
  }
  return best_s;
}

// Times both plans and chooses the faster one.
Status CudaDevice::Choose(const KernelCalls& calls) {
  KILN_ASSIGN_OR_RETURN(const double branches_s, TimePlan(calls));
  KILN_RETURN_IF_ERROR(UsePlan(1));
  KILN_ASSIGN_OR_RETURN(const double one_by_one_s, TimePlan(calls));
  return branches_s < one_by_one_s ? UsePlan(kMaxStreams) : OkStatus();
}

Status CudaDevice::MakeStreamAndEvents() {
  KILN_ASSIGN_OR_RETURN(Stream run, MakeStream(kCuStreamDefault));
  run_stream_.emplace(std::move(run));
  stream_ = run_stream_->get();
  KILN_ASSIGN_OR_RETURN(Event fork, MakeEvent(kCuEventDisableTiming));
  fork_.emplace(std::move(fork));
  for (int i = 0; i < 2; ++i) {
    KILN_ASSIGN_OR_RETURN(Event event, MakeEvent(kCuEventDefault));
    clock_.push_back(std::move(event));
  }
  return OkStatus();
}

Status CudaDevice::Open() {
  KILN_ASSIGN_OR_RETURN(context_, GpuContext::Open(driver_, gpu_));
  const DeviceScope scope(*this);
  return MakeStreamAndEvents();
}

Status CudaDevice::Prepare(const KernelCalls& calls) {
  StreamConstants(calls);
  return UsePlan(streams_ > 0 ? streams_ : kMaxStreams);
}

Status CudaDevice::EncodeMaps(Launching& launching, std::span<const CuPointer> addresses) const {
  for (size_t i = 0; i < launching.tensor_maps.size(); ++i) {
    const TensorMap& map = launching.tensor_maps[i];
    EncodedMap& encoded = launching.encoded[i];
    const CuPointer begin = addresses[map.arg];
    if (encoded.begin == begin) continue;
    KILN_ASSIGN_OR_RETURN(encoded.map, EncodeTensorMap(driver_, map, begin));
    encoded.begin = begin;
  }
  return OkStatus();
}

Status CudaDevice::LaunchKernel(Kernel& kernel, std::span<void* const> args, CuStream stream,
                                bool follows_kernel) const {
  std::vector<CuPointer> addresses;
  for (const void* arg : args) addresses.push_back(AddressOf(arg));
  std::vector<void*> parameters;
  for (Launching& launching : kernel.launches) {
    KILN_RETURN_IF_ERROR(EncodeMaps(launching, addresses));
    parameters.clear();
    for (uint32_t arg : launching.args) parameters.push_back(&addresses[arg]);
    for (EncodedMap& encoded : launching.encoded) parameters.push_back(&encoded.map);
    const bool may_overlap = follows_kernel && launching.waits_for_previous;
    KILN_RETURN_IF_ERROR(
        Launch(driver_, launching.launch, stream, parameters.data(),
               {.order = may_overlap ? LaunchOrder::kWaitsItself : LaunchOrder::kAfterPrevious,
                .streamed = kernel.streamed}));
    follows_kernel = true;
  }
  return OkStatus();
}

// Queues the kernels into the recording streams, with branches beside each other.
Status CudaDevice::RecordAll(const KernelCalls& calls) {
  const CuStream origin = record_streams_[0].get();
  KILN_RETURN_IF_ERROR(Check(driver_.EventRecord(fork_->get(), origin), "record the start"));
  for (size_t i = 1; i < record_streams_.size(); ++i) {
    KILN_RETURN_IF_ERROR(
        Check(driver_.StreamWaitEvent(record_streams_[i].get(), fork_->get(), 0), "fork"));
  }
  const auto wait = [&](CuStream stream, int32_t kernel) {
    const Event& event = kernel_events_[event_of_[static_cast<size_t>(kernel)]];
    return Check(driver_.StreamWaitEvent(stream, event.get(), 0), "wait for a kernel");
  };
  std::vector<bool> is_used(record_streams_.size());
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const StreamPlan::Step& step = plan_.steps[k];
    const auto at = static_cast<size_t>(step.stream);
    const CuStream stream = record_streams_[at].get();
    for (int32_t before : step.waits) KILN_RETURN_IF_ERROR(wait(stream, before));
    const bool follows_kernel = is_used[at] && step.waits.empty();
    KILN_RETURN_IF_ERROR(LaunchKernel(kernels_[k], calls.args[k], stream, follows_kernel));
    is_used[at] = true;
    if (!step.awaited) continue;
    KILN_RETURN_IF_ERROR(
        Check(driver_.EventRecord(kernel_events_[event_of_[k]].get(), stream), "record a kernel"));
  }
  for (int32_t last : plan_.joins) KILN_RETURN_IF_ERROR(wait(origin, last));
  return OkStatus();
}

Status CudaDevice::LaunchOneByOne(const KernelCalls& calls, CuStream stream) {
  for (size_t k = 0; k < kernels_.size(); ++k) {
    KILN_RETURN_IF_ERROR(LaunchKernel(kernels_[k], calls.args[k], stream, k > 0));
  }
  return OkStatus();
}

StatusOr<GraphExec> CudaDevice::Record(const std::function<Status()>& queue) const {
  const CuStream origin = record_streams_[0].get();
  KILN_RETURN_IF_ERROR(
      Check(driver_.StreamBeginCapture(origin, kCuCaptureThreadLocal), "record a graph"));
  Status status = queue();
  CuGraph graph = nullptr;
  // The recording ends also after an error, because the stream must leave the recording.
  const CuResult ended = driver_.StreamEndCapture(origin, &graph);
  if (status.ok()) status = Check(ended, "record a graph");
  CuGraphExec exec = nullptr;
  if (status.ok()) {
    status = Check(driver_.GraphInstantiate(&exec, graph, 0), "instantiate a graph");
  }
  if (graph != nullptr) driver_.GraphDestroy(graph);
  KILN_RETURN_IF_ERROR(status);
  return GraphExec(driver_, exec);
}

StatusOr<CuGraphExec> CudaDevice::CurrentGraph(const KernelCalls& calls) {
  const auto found = std::ranges::find(graphs_, calls.callers, &Graph::callers);
  if (found != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, found);
  } else {
    KILN_ASSIGN_OR_RETURN(GraphExec exec, Record([&] { return RecordAll(calls); }));
    if (graphs_.size() == kMaxGraphs) graphs_.pop_back();
    graphs_.push_front({calls.callers, std::move(exec)});
  }
  return graphs_.front().exec.get();
}

Status CudaDevice::Synchronize(std::string_view what) {
  return Check(driver_.StreamSynchronize(run_stream_->get()), what);
}

// A stream that is being recorded can neither wait for work outside of the recording nor launch a
// graph.
Status CudaDevice::BeginRun(std::optional<void*> stream) {
  stream_ = stream ? static_cast<CuStream>(*stream) : run_stream_->get();
  is_queued_ = stream.has_value();
  is_recorded_ = false;
  if (is_queued_) {
    int capture = kCuCaptureNone;
    KILN_RETURN_IF_ERROR(
        Check(driver_.StreamIsCapturing(stream_, &capture), "look at the caller's stream"));
    is_recorded_ = capture != kCuCaptureNone;
    was_queued_ = true;
  }
  if (is_recorded_ || !queued_.has_value()) return OkStatus();
  return Check(driver_.StreamWaitEvent(stream_, queued_->get(), 0), "wait for the last run");
}

Status CudaDevice::EndQueuedRun(bool shares_memory) {
  if (is_recorded_ || !shares_memory) return OkStatus();
  if (!queued_.has_value()) {
    KILN_ASSIGN_OR_RETURN(Event event, MakeEvent(kCuEventDisableTiming));
    queued_.emplace(std::move(event));
  }
  return Check(driver_.EventRecord(queued_->get(), stream_), "record the end of a run");
}

Status CudaDevice::LaunchAll(const KernelCalls& calls) {
  if (kernels_.empty()) return OkStatus();
  if (is_recorded_ || (is_queued_ && kernels_.size() <= kMaxLaunched)) {
    return LaunchOneByOne(calls, stream_);
  }
  KILN_ASSIGN_OR_RETURN(CuGraphExec graph, CurrentGraph(calls));
  return Check(driver_.GraphLaunch(graph, stream_), "launch the network");
}

// One more graph goes before the timed ones, so that the host queues them while the GPU is at work.
StatusOr<double> CudaDevice::TimeGraph(CuGraphExec graph, int64_t number) {
  const CuStream stream = run_stream_->get();
  const auto queue = [&]() -> Status {
    KILN_RETURN_IF_ERROR(Check(driver_.GraphLaunch(graph, stream), "launch a graph"));
    KILN_RETURN_IF_ERROR(Check(driver_.EventRecord(clock_[0].get(), stream), "record the start"));
    for (int64_t i = 0; i < number; ++i) {
      KILN_RETURN_IF_ERROR(Check(driver_.GraphLaunch(graph, stream), "launch a graph"));
    }
    return Check(driver_.EventRecord(clock_[1].get(), stream), "record the end");
  };
  const Status queued = queue();
  const Status done = Synchronize("run a graph");
  KILN_RETURN_IF_ERROR(queued.ok() ? done : queued);
  float milliseconds = 0;
  KILN_RETURN_IF_ERROR(Check(
      driver_.EventElapsedTime(&milliseconds, clock_[0].get(), clock_[1].get()), "read the time"));
  return 1e-3 * static_cast<double>(milliseconds);
}

StatusOr<double> CudaDevice::TimeRuns(const KernelCalls& calls, int64_t number) {
  if (kernels_.empty()) return 0.0;
  KILN_ASSIGN_OR_RETURN(CuGraphExec graph, CurrentGraph(calls));
  return TimeGraph(graph, number);
}

StatusOr<std::vector<double>> CudaDevice::TimeKernels(const KernelCalls& calls, int64_t number) {
  const CuStream origin = record_streams_[0].get();
  std::vector<double> seconds;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const auto launches = [&]() -> Status {
      for (int64_t i = 0; i < number; ++i) {
        KILN_RETURN_IF_ERROR(LaunchKernel(kernels_[k], calls.args[k], origin, i > 0));
      }
      return OkStatus();
    };
    KILN_ASSIGN_OR_RETURN(const GraphExec graph, Record(launches));
    KILN_ASSIGN_OR_RETURN(const double all_s, TimeGraph(graph.get(), 1));
    seconds.push_back(all_s / static_cast<double>(number));
  }
  return seconds;
}

// An untimed run goes before, so that the host queues the kernels while the GPU is at work. The
// events between the kernels keep them from overlapping.
StatusOr<std::vector<KernelSpan>> CudaDevice::TraceRun(const KernelCalls& calls) {
  const CuStream stream = run_stream_->get();
  std::vector<Event> marks;
  for (size_t i = 0; i <= kernels_.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(Event event, MakeEvent(kCuEventDefault));
    marks.push_back(std::move(event));
  }
  const auto mark = [&](size_t i) {
    return Check(driver_.EventRecord(marks[i].get(), stream), "record a kernel's time");
  };
  const auto queue = [&]() -> Status {
    KILN_RETURN_IF_ERROR(LaunchOneByOne(calls, stream));
    KILN_RETURN_IF_ERROR(mark(0));
    for (size_t k = 0; k < kernels_.size(); ++k) {
      KILN_RETURN_IF_ERROR(LaunchKernel(kernels_[k], calls.args[k], stream, false));
      KILN_RETURN_IF_ERROR(mark(k + 1));
    }
    return OkStatus();
  };
  const Status queued = queue();
  const Status done = Synchronize("run the network");
  KILN_RETURN_IF_ERROR(queued.ok() ? done : queued);
  std::vector<KernelSpan> spans;
  double at_s = 0;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    float milliseconds = 0;
    KILN_RETURN_IF_ERROR(
        Check(driver_.EventElapsedTime(&milliseconds, marks[k].get(), marks[k + 1].get()),
              "read the time"));
    const double end_s = at_s + 1e-3 * static_cast<double>(milliseconds);
    spans.push_back({at_s, end_s});
    at_s = end_s;
  }
  return spans;
}

StatusOr<std::unique_ptr<NetworkDevice>> Open(const Network& network,
                                              const ExecutorOptions& options) {
  const CudaDriver* driver = options.driver;
  if (driver == nullptr) {
    KILN_ASSIGN_OR_RETURN(driver, LoadCudaDriver());
  }
  KILN_ASSIGN_OR_RETURN(const CudaGpu gpu, FindGpu(*driver, options.gpu));
  KILN_RETURN_IF_ERROR(CheckThisGpu(network.target, gpu));
  auto device = std::make_unique<CudaDevice>(network, *driver, gpu, options.streams);
  KILN_RETURN_IF_ERROR(device->Open());
  return device;
}

// DLPack's kDLCUDA
constexpr int32_t kCudaType = 2;
// DLPack's kDLCUDAManaged
constexpr int32_t kManagedType = 13;
// The first is DLPack's kDLCUDAHost.
constexpr int32_t kHostTypes[] = {3, kManagedType};
constexpr int32_t kSharedTypes[] = {kManagedType};

}  // namespace

constinit const NetworkDeviceKind kCudaDevice = {.target = "cuda",
                                                 .noun = "GPU",
                                                 .is_numbered = true,
                                                 .has_streams = true,
                                                 .dl_type = kCudaType,
                                                 .host_dl_types = kHostTypes,
                                                 .shared_dl_types = kSharedTypes,
                                                 .open = Open};

}  // namespace kiln::runtime
