#include "runtime/cuda_executor.h"

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <utility>

#include "runtime/cuda_gpus.h"
#include "runtime/cuda_module.h"
#include "runtime/kernel_order.h"

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

  // The calling thread's own context comes back when this object is destroyed.
  class Use {
   public:
    explicit Use(const GpuContext& context) : driver_(context.driver_) {
      driver_.CtxPushCurrent(context.context_);
    }
    ~Use() {
      CuContext popped = nullptr;
      driver_.CtxPopCurrent(&popped);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const CudaDriver& driver_;
  };

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
using Memory = Owned<CuPointer, &CudaDriver::MemFree>;
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

class CudaExecutor : public Executor {
 public:
  CudaExecutor(std::shared_ptr<const NetworkFile> file, const CudaDriver& driver,
               const CudaGpu& gpu)
      : Executor(std::move(file)), driver_(driver), gpu_(gpu) {}
  ~CudaExecutor() override;

  // 0 streams mean the faster number of streams.
  Status Start(int streams);
  MemoryUse memory_use() const override;

 private:
  struct Launching {
    CudaLaunch launch;
    // Indices into the kernel's arguments.
    std::vector<uint32_t> args;
    std::vector<TensorMap> tensor_maps;
    bool waits_for_previous = false;
  };
  struct Kernel {
    std::vector<Launching> launches;
    std::vector<Region> args;
    // The part of its constants that is streamed.
    CudaMemory streamed;
  };
  // A graph for the caller's memory at these addresses.
  struct Graph {
    std::vector<CuPointer> addresses;
    GraphExec exec;
  };

  Status Check(CuResult result, std::string_view what) const { return driver_.Check(result, what); }
  StatusOr<Stream> MakeStream(unsigned flags) const;
  StatusOr<Event> MakeEvent(unsigned flags) const;
  StatusOr<Memory> Allocate(int64_t bytes, std::string_view what);
  Status CheckAlignments() const;
  Status LoadKernels();
  StatusOr<Kernel> LoadKernel(const NetworkKernel& from) const;
  Status UploadConstants();
  void StreamConstants();
  Status UsePlan(int most_streams);
  StatusOr<double> TimePlan();
  Status ChoosePlan();

  CuPointer AddressOf(const Region& region) const;
  StatusOr<bool> IsOnGpu(const void* pointer, std::string_view name) const;
  StatusOr<CuPointer> Staged(int32_t root);
  // Copies go into `stream`.
  Status SetInputs(std::span<const void* const> inputs, CuStream stream);
  Status SetOutputs(std::span<void* const> outputs);
  Status CopyOutputs(std::span<void* const> outputs, CuStream stream);

  // `follows_kernel` says that the last work in the stream is a kernel, and that this kernel waits
  // for nothing else.
  Status LaunchKernel(const Kernel& kernel, CuStream stream, bool follows_kernel) const;
  Status RecordAll();
  Status LaunchOneByOne(CuStream stream) const;
  // Makes work in `stream` wait for the runs before it that were queued.
  Status WaitForQueued(CuStream stream);
  // Tells WaitForQueued that a run was queued in `stream`.
  Status NoteQueued(CuStream stream);
  // Returns whether runs share memory, which is the executor's own.
  bool SharesMemory() const { return !arena_.empty() || !staged_.empty(); }
  StatusOr<GraphExec> Record(const std::function<Status()>& queue) const;
  StatusOr<CuGraphExec> CurrentGraph();
  Status Wait(std::string_view what) const;
  StatusOr<double> TimeGraph(CuGraphExec graph, int64_t number);

  Status DoRun(std::span<const void* const> inputs, std::span<void* const> outputs) override;
  Status DoQueue(std::span<const void* const> inputs, std::span<void* const> outputs,
                 CuStream stream) override;
  Status StartTiming(std::span<const void* const> inputs) override;
  StatusOr<double> TimeRuns(int64_t number) override;
  StatusOr<std::vector<double>> TimeKernels(int64_t number) override;
  StatusOr<std::vector<double>> TimeKernelsInRuns(int64_t) override {
    return Unimplemented("a GPU's kernels are timed by themselves alone");
  }

  const CudaDriver& driver_;
  const CudaGpu gpu_;
  std::unique_ptr<GpuContext> context_;
  std::vector<std::unique_ptr<CudaModule>> modules_;
  std::vector<Kernel> kernels_;
  StreamPlan plan_;
  // One stream, which waits for the legacy default stream.
  std::vector<Stream> run_stream_;
  // These streams do not wait for it, so that other threads do not disturb a recording.
  std::vector<Stream> record_streams_;
  // One event for each kernel that another one waits for.
  std::vector<Event> kernel_events_;
  // Index of each kernel's event in kernel_events_.
  std::vector<size_t> event_of_;
  // One event.
  std::vector<Event> fork_;
  // Start and end.
  std::vector<Event> clock_;
  // One event, the end of the last run that was queued; none before the first one.
  std::vector<Event> queued_;
  // True: a run was queued in a stream of a caller's.
  bool was_queued_ = false;
  // One block, if there are any constants.
  std::vector<Memory> constants_;
  // One block, if there is an arena.
  std::vector<Memory> arena_;
  std::map<int32_t, Memory> staged_;
  int64_t staged_bytes_ = 0;
  // Address of each buffer that belongs to the caller, in the current run.
  std::vector<CuPointer> addresses_;
  // The graph that was used last comes first.
  std::list<Graph> graphs_;
};

CudaExecutor::~CudaExecutor() {
  if (context_ == nullptr) return;
  const GpuContext::Use use(*context_);
  // Kernels may still be running in streams of callers.
  if (was_queued_) driver_.CtxSynchronize();
  graphs_.clear();
  staged_.clear();
  arena_.clear();
  constants_.clear();
  clock_.clear();
  queued_.clear();
  fork_.clear();
  kernel_events_.clear();
  record_streams_.clear();
  run_stream_.clear();
  modules_.clear();
}

StatusOr<Stream> CudaExecutor::MakeStream(unsigned flags) const {
  CuStream stream = nullptr;
  KILN_RETURN_IF_ERROR(Check(driver_.StreamCreate(&stream, flags), "make a stream"));
  return Stream(driver_, stream);
}

StatusOr<Event> CudaExecutor::MakeEvent(unsigned flags) const {
  CuEvent event = nullptr;
  KILN_RETURN_IF_ERROR(Check(driver_.EventCreate(&event, flags), "make an event"));
  return Event(driver_, event);
}

StatusOr<Memory> CudaExecutor::Allocate(int64_t bytes, std::string_view what) {
  CuPointer block = 0;
  KILN_RETURN_IF_ERROR(Check(driver_.MemAlloc(&block, static_cast<size_t>(bytes)),
                             fmt::format("allocate {} bytes of GPU memory for {}", bytes, what)));
  return Memory(driver_, block);
}

StatusOr<CudaExecutor::Kernel> CudaExecutor::LoadKernel(const NetworkKernel& from) const {
  Kernel kernel;
  for (const KernelArgument& arg : from.args)
    kernel.args.push_back(RegionOf(network(), arg.buffer));
  for (const NetworkLaunch& launch : from.launches) {
    CudaLaunchShape shape{.dynamic_shared_bytes = launch.dynamic_shared_bytes,
                          .cluster = launch.cluster};
    std::copy_n(launch.grid, 3, shape.grid);
    std::copy_n(launch.block, 3, shape.block);
    const CudaModule& module = *modules_[static_cast<size_t>(from.binary)];
    std::vector<size_t> parameters(launch.args.size(), sizeof(CuPointer));
    parameters.resize(parameters.size() + launch.tensor_maps.size(), sizeof(CuTensorMap));
    KILN_ASSIGN_OR_RETURN(CudaLaunch prepared, module.Prepare(launch.symbol, shape, parameters));
    kernel.launches.push_back(
        {std::move(prepared), launch.args, launch.tensor_maps, launch.waits_for_previous});
  }
  return kernel;
}

Status CudaExecutor::CheckAlignments() const {
  for (const NetworkBuffer& buffer : network().buffers) {
    if (buffer.alignment_bytes <= kDriverAlignment) continue;
    return InvalidArgument("a buffer is aligned to {} bytes, at most {} are possible on a GPU",
                           buffer.alignment_bytes, kDriverAlignment);
  }
  return OkStatus();
}

Status CudaExecutor::LoadKernels() {
  for (std::string_view binary : network().binaries) {
    KILN_ASSIGN_OR_RETURN(auto module, CudaModule::Load(driver_, gpu_, binary));
    modules_.push_back(std::move(module));
  }
  for (const NetworkKernel& from : network().kernels) {
    KILN_ASSIGN_OR_RETURN(Kernel kernel, LoadKernel(from));
    kernels_.push_back(std::move(kernel));
  }
  return OkStatus();
}

Status CudaExecutor::UploadConstants() {
  if (file().constants().empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(Memory block, Allocate(network().constants_bytes, "constants"));
  constants_.push_back(std::move(block));
  KILN_RETURN_IF_ERROR(
      Check(driver_.MemcpyHtoDAsync(constants_[0].get(), file().constants().data(),
                                    file().constants().size(), run_stream_[0].get()),
            "upload the constants"));
  return Wait("upload the constants");
}

// A run reads each weight once. If the weights do not all fit into the L2 cache, the last run's
// weights have left it before they are read again, and until then they push out the data between
// the kernels. So each kernel makes its own largest constant the first to leave the cache. On an
// H200 (resnet-18, 45 MiB of weights in a cache of 60 MiB) a run takes 206.0 instead of 212.0 us.
// Networks with few weights, or with so many that hardly any stays, do not change.
void CudaExecutor::StreamConstants() {
  if (network().constants_bytes <= gpu_.l2_bytes / 2) return;
  // Drivers that do not know the attribute leave the value as it is.
  int most = 0;
  if (driver_.DeviceGetAttribute(&most, kCuMaxAccessPolicyWindowBytes, gpu_.handle) != 0) most = 0;
  for (Kernel& kernel : kernels_) {
    for (const Region& region : kernel.args) {
      if (network().buffers[static_cast<size_t>(region.root)].place != Place::kConstant) continue;
      const auto bytes = static_cast<size_t>(std::min<int64_t>(region.bytes, most));
      if (bytes > kernel.streamed.bytes) kernel.streamed = {AddressOf(region), bytes};
    }
  }
}

Status CudaExecutor::UsePlan(int most_streams) {
  plan_ = PlanStreams(network(), most_streams);
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
StatusOr<double> CudaExecutor::TimePlan() {
  KILN_ASSIGN_OR_RETURN(const GraphExec graph, Record([&] { return RecordAll(); }));
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

// Times both plans and chooses the faster one. Inputs are zeros meanwhile, which are valid indices.
Status CudaExecutor::ChoosePlan() {
  KILN_RETURN_IF_ERROR(UsePlan(kMaxStreams));
  if (plan_.streams == 1) return OkStatus();
  for (const NetworkTensor& input : inputs()) {
    const auto bytes =
        static_cast<size_t>(network().buffers[static_cast<size_t>(input.buffer)].bytes);
    CuPointer& address = addresses_[static_cast<size_t>(input.buffer)];
    KILN_ASSIGN_OR_RETURN(address, Staged(input.buffer));
    KILN_RETURN_IF_ERROR(
        Check(driver_.MemsetD8Async(address, 0, bytes, run_stream_[0].get()), "clear an input"));
  }
  KILN_RETURN_IF_ERROR(SetOutputs({}));
  KILN_ASSIGN_OR_RETURN(const double branches_s, TimePlan());
  KILN_RETURN_IF_ERROR(UsePlan(1));
  KILN_ASSIGN_OR_RETURN(const double one_by_one_s, TimePlan());
  if (branches_s < one_by_one_s) KILN_RETURN_IF_ERROR(UsePlan(kMaxStreams));
  staged_.clear();
  staged_bytes_ = 0;
  std::ranges::fill(addresses_, CuPointer{0});
  return OkStatus();
}

Status CudaExecutor::Start(int streams) {
  KILN_ASSIGN_OR_RETURN(context_, GpuContext::Open(driver_, gpu_));
  const GpuContext::Use use(*context_);
  KILN_RETURN_IF_ERROR(CheckAlignments());
  KILN_RETURN_IF_ERROR(LoadKernels());
  KILN_ASSIGN_OR_RETURN(Stream run, MakeStream(kCuStreamDefault));
  run_stream_.push_back(std::move(run));
  KILN_ASSIGN_OR_RETURN(Event fork, MakeEvent(kCuEventDisableTiming));
  fork_.push_back(std::move(fork));
  for (int i = 0; i < 2; ++i) {
    KILN_ASSIGN_OR_RETURN(Event event, MakeEvent(kCuEventDefault));
    clock_.push_back(std::move(event));
  }
  if (network().arena_bytes > 0) {
    KILN_ASSIGN_OR_RETURN(Memory arena, Allocate(network().arena_bytes, "buffers"));
    arena_.push_back(std::move(arena));
  }
  addresses_.resize(network().buffers.size());
  KILN_RETURN_IF_ERROR(UploadConstants());
  StreamConstants();
  return streams > 0 ? UsePlan(streams) : ChoosePlan();
}

MemoryUse CudaExecutor::memory_use() const {
  return {.constants = network().constants_bytes,
          .arena = network().arena_bytes,
          .staging = staged_bytes_};
}

CuPointer CudaExecutor::AddressOf(const Region& region) const {
  const NetworkBuffer& root = network().buffers[static_cast<size_t>(region.root)];
  const auto offset = static_cast<CuPointer>(region.offset);
  const auto place = static_cast<CuPointer>(root.offset);
  if (root.place == Place::kArena) return arena_[0].get() + place + offset;
  if (root.place == Place::kConstant) return constants_[0].get() + place + offset;
  return addresses_[static_cast<size_t>(region.root)] + offset;
}

// Refuses memory of another GPU. Memory that the driver does not know belongs to the host.
StatusOr<bool> CudaExecutor::IsOnGpu(const void* pointer, std::string_view name) const {
  const auto address = reinterpret_cast<CuPointer>(pointer);
  unsigned type = 0;
  int ordinal = 0;
  if (driver_.PointerGetAttribute(&type, kCuPointerMemoryType, address) != 0) return false;
  if (type != kCuMemoryTypeDevice) return false;
  KILN_RETURN_IF_ERROR(
      Check(driver_.PointerGetAttribute(&ordinal, kCuPointerDeviceOrdinal, address),
            "look at a pointer"));
  if (ordinal == gpu_.ordinal) return true;
  return InvalidArgument("the memory of '{}' is on GPU {}, and the network on GPU {}", name,
                         ordinal, gpu_.ordinal);
}

StatusOr<CuPointer> CudaExecutor::Staged(int32_t root) {
  const auto found = staged_.find(root);
  if (found != staged_.end()) return found->second.get();
  const int64_t bytes = network().buffers[static_cast<size_t>(root)].bytes;
  KILN_ASSIGN_OR_RETURN(Memory block, Allocate(bytes, "inputs and outputs"));
  staged_bytes_ += bytes;
  return staged_.emplace(root, std::move(block)).first->second.get();
}

Status CudaExecutor::SetInputs(std::span<const void* const> pointers, CuStream stream) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    const NetworkTensor& input = inputs()[i];
    const NetworkBuffer& buffer = network().buffers[static_cast<size_t>(input.buffer)];
    // No kernel reads the input.
    if (buffer.bytes == 0) continue;
    auto address = reinterpret_cast<CuPointer>(pointers[i]);
    KILN_ASSIGN_OR_RETURN(const bool on_gpu, IsOnGpu(pointers[i], input.name));
    if (!on_gpu || address % static_cast<CuPointer>(buffer.alignment_bytes) != 0) {
      KILN_ASSIGN_OR_RETURN(address, Staged(input.buffer));
      const auto bytes = static_cast<size_t>(buffer.bytes);
      const CuResult copied =
          on_gpu ? driver_.MemcpyDtoDAsync(address, reinterpret_cast<CuPointer>(pointers[i]), bytes,
                                           stream)
                 : driver_.MemcpyHtoDAsync(address, pointers[i], bytes, stream);
      KILN_RETURN_IF_ERROR(Check(copied, fmt::format("copy input '{}'", input.name)));
    }
    addresses_[static_cast<size_t>(input.buffer)] = address;
  }
  return OkStatus();
}

// If `pointers` is empty, the executor's own memory gets all outputs.
Status CudaExecutor::SetOutputs(std::span<void* const> pointers) {
  for (size_t i = 0; i < outputs().size(); ++i) {
    if (!IsWrittenInPlace(network(), i)) continue;
    const NetworkTensor& output = outputs()[i];
    const NetworkBuffer& buffer = network().buffers[static_cast<size_t>(output.buffer)];
    bool in_place = false;
    if (!pointers.empty()) {
      KILN_ASSIGN_OR_RETURN(in_place, IsOnGpu(pointers[i], output.name));
      in_place &= reinterpret_cast<uintptr_t>(pointers[i]) %
                      static_cast<uintptr_t>(buffer.alignment_bytes) ==
                  0;
    }
    CuPointer& address = addresses_[static_cast<size_t>(output.buffer)];
    if (in_place) {
      address = reinterpret_cast<CuPointer>(pointers[i]);
    } else {
      KILN_ASSIGN_OR_RETURN(address, Staged(output.buffer));
    }
  }
  return OkStatus();
}

Status CudaExecutor::CopyOutputs(std::span<void* const> pointers, CuStream stream) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    const NetworkTensor& output = outputs()[i];
    const Region region = RegionOf(network(), output.buffer);
    const CuPointer from = AddressOf(region);
    const auto to = reinterpret_cast<CuPointer>(pointers[i]);
    if (from == to || region.bytes == 0) continue;
    KILN_ASSIGN_OR_RETURN(const bool on_gpu, IsOnGpu(pointers[i], output.name));
    const auto bytes = static_cast<size_t>(region.bytes);
    const CuResult copied = on_gpu ? driver_.MemcpyDtoDAsync(to, from, bytes, stream)
                                   : driver_.MemcpyDtoHAsync(pointers[i], from, bytes, stream);
    KILN_RETURN_IF_ERROR(Check(copied, fmt::format("copy output '{}'", output.name)));
  }
  return OkStatus();
}

Status CudaExecutor::LaunchKernel(const Kernel& kernel, CuStream stream,
                                  bool follows_kernel) const {
  std::vector<CuPointer> addresses;
  for (const Region& region : kernel.args) addresses.push_back(AddressOf(region));
  std::vector<void*> parameters;
  for (const Launching& launching : kernel.launches) {
    parameters.clear();
    for (uint32_t arg : launching.args) parameters.push_back(&addresses[arg]);
    std::vector<CuTensorMap> maps;
    for (const TensorMap& map : launching.tensor_maps) {
      KILN_ASSIGN_OR_RETURN(const CuTensorMap encoded,
                            EncodeTensorMap(driver_, map, addresses[map.arg]));
      maps.push_back(encoded);
    }
    for (CuTensorMap& map : maps) parameters.push_back(&map);
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
Status CudaExecutor::RecordAll() {
  const CuStream origin = record_streams_[0].get();
  KILN_RETURN_IF_ERROR(Check(driver_.EventRecord(fork_[0].get(), origin), "record the start"));
  for (size_t i = 1; i < record_streams_.size(); ++i) {
    KILN_RETURN_IF_ERROR(
        Check(driver_.StreamWaitEvent(record_streams_[i].get(), fork_[0].get(), 0), "fork"));
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
    KILN_RETURN_IF_ERROR(LaunchKernel(kernels_[k], stream, is_used[at] && step.waits.empty()));
    is_used[at] = true;
    if (!step.awaited) continue;
    KILN_RETURN_IF_ERROR(
        Check(driver_.EventRecord(kernel_events_[event_of_[k]].get(), stream), "record a kernel"));
  }
  for (int32_t last : plan_.joins) KILN_RETURN_IF_ERROR(wait(origin, last));
  return OkStatus();
}

Status CudaExecutor::LaunchOneByOne(CuStream stream) const {
  bool follows_kernel = false;
  for (const Kernel& kernel : kernels_) {
    KILN_RETURN_IF_ERROR(LaunchKernel(kernel, stream, follows_kernel));
    follows_kernel = true;
  }
  return OkStatus();
}

StatusOr<GraphExec> CudaExecutor::Record(const std::function<Status()>& queue) const {
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

StatusOr<CuGraphExec> CudaExecutor::CurrentGraph() {
  const auto found = std::find_if(graphs_.begin(), graphs_.end(), [&](const Graph& graph) {
    return graph.addresses == addresses_;
  });
  if (found != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, found);
  } else {
    KILN_ASSIGN_OR_RETURN(GraphExec exec, Record([&] { return RecordAll(); }));
    if (graphs_.size() == kMaxGraphs) graphs_.pop_back();
    graphs_.push_front({addresses_, std::move(exec)});
  }
  return graphs_.front().exec.get();
}

Status CudaExecutor::Wait(std::string_view what) const {
  return Check(driver_.StreamSynchronize(run_stream_[0].get()), what);
}

Status CudaExecutor::WaitForQueued(CuStream stream) {
  if (queued_.empty()) return OkStatus();
  return Check(driver_.StreamWaitEvent(stream, queued_[0].get(), 0), "wait for the last run");
}

Status CudaExecutor::NoteQueued(CuStream stream) {
  if (!SharesMemory()) return OkStatus();
  if (queued_.empty()) {
    KILN_ASSIGN_OR_RETURN(Event event, MakeEvent(kCuEventDisableTiming));
    queued_.push_back(std::move(event));
  }
  return Check(driver_.EventRecord(queued_[0].get(), stream), "record the end of a run");
}

// A stream that is being recorded can neither wait for work outside of the recording nor launch a
// graph.
Status CudaExecutor::DoQueue(std::span<const void* const> in, std::span<void* const> out,
                             CuStream stream) {
  const GpuContext::Use use(*context_);
  int capture = kCuCaptureNone;
  KILN_RETURN_IF_ERROR(
      Check(driver_.StreamIsCapturing(stream, &capture), "look at the caller's stream"));
  const bool is_recorded = capture != kCuCaptureNone;
  was_queued_ = true;
  if (!is_recorded) KILN_RETURN_IF_ERROR(WaitForQueued(stream));
  KILN_RETURN_IF_ERROR(SetInputs(in, stream));
  KILN_RETURN_IF_ERROR(SetOutputs(out));
  if (is_recorded || kernels_.size() <= kMaxLaunched) {
    KILN_RETURN_IF_ERROR(LaunchOneByOne(stream));
  } else {
    KILN_ASSIGN_OR_RETURN(CuGraphExec graph, CurrentGraph());
    KILN_RETURN_IF_ERROR(Check(driver_.GraphLaunch(graph, stream), "launch the network"));
  }
  KILN_RETURN_IF_ERROR(CopyOutputs(out, stream));
  return is_recorded ? OkStatus() : NoteQueued(stream);
}

Status CudaExecutor::DoRun(std::span<const void* const> in, std::span<void* const> out) {
  const GpuContext::Use use(*context_);
  const CuStream stream = run_stream_[0].get();
  const auto queue = [&]() -> Status {
    KILN_RETURN_IF_ERROR(WaitForQueued(stream));
    KILN_RETURN_IF_ERROR(SetInputs(in, stream));
    KILN_RETURN_IF_ERROR(SetOutputs(out));
    if (!kernels_.empty()) {
      KILN_ASSIGN_OR_RETURN(CuGraphExec graph, CurrentGraph());
      KILN_RETURN_IF_ERROR(Check(driver_.GraphLaunch(graph, stream), "launch the network"));
    }
    return CopyOutputs(out, stream);
  };
  const Status queued = queue();
  // The wait happens also after an error, because nothing may still read or write the caller's
  // memory.
  const Status done = Wait("run the network");
  return queued.ok() ? done : queued;
}

Status CudaExecutor::StartTiming(std::span<const void* const> in) {
  const GpuContext::Use use(*context_);
  const CuStream stream = run_stream_[0].get();
  KILN_RETURN_IF_ERROR(WaitForQueued(stream));
  KILN_RETURN_IF_ERROR(SetInputs(in, stream));
  KILN_RETURN_IF_ERROR(SetOutputs({}));
  return Wait("copy the inputs");
}

// One more graph goes before the timed ones, so that the host queues them while the GPU is at work.
StatusOr<double> CudaExecutor::TimeGraph(CuGraphExec graph, int64_t number) {
  const CuStream stream = run_stream_[0].get();
  const auto queue = [&]() -> Status {
    KILN_RETURN_IF_ERROR(Check(driver_.GraphLaunch(graph, stream), "launch a graph"));
    KILN_RETURN_IF_ERROR(Check(driver_.EventRecord(clock_[0].get(), stream), "record the start"));
    for (int64_t i = 0; i < number; ++i) {
      KILN_RETURN_IF_ERROR(Check(driver_.GraphLaunch(graph, stream), "launch a graph"));
    }
    return Check(driver_.EventRecord(clock_[1].get(), stream), "record the end");
  };
  const Status queued = queue();
  const Status done = Wait("run a graph");
  KILN_RETURN_IF_ERROR(queued.ok() ? done : queued);
  float milliseconds = 0;
  KILN_RETURN_IF_ERROR(Check(
      driver_.EventElapsedTime(&milliseconds, clock_[0].get(), clock_[1].get()), "read the time"));
  return 1e-3 * static_cast<double>(milliseconds);
}

StatusOr<double> CudaExecutor::TimeRuns(int64_t number) {
  if (kernels_.empty()) return 0.0;
  const GpuContext::Use use(*context_);
  KILN_ASSIGN_OR_RETURN(CuGraphExec graph, CurrentGraph());
  return TimeGraph(graph, number);
}

StatusOr<std::vector<double>> CudaExecutor::TimeKernels(int64_t number) {
  const GpuContext::Use use(*context_);
  const CuStream origin = record_streams_[0].get();
  std::vector<double> seconds;
  for (const Kernel& kernel : kernels_) {
    const auto calls = [&]() -> Status {
      for (int64_t i = 0; i < number; ++i)
        KILN_RETURN_IF_ERROR(LaunchKernel(kernel, origin, i > 0));
      return OkStatus();
    };
    KILN_ASSIGN_OR_RETURN(const GraphExec graph, Record(calls));
    KILN_ASSIGN_OR_RETURN(const double all_s, TimeGraph(graph.get(), 1));
    seconds.push_back(all_s / static_cast<double>(number));
  }
  return seconds;
}

}  // namespace

StatusOr<std::unique_ptr<Executor>> LoadOnCuda(std::shared_ptr<const NetworkFile> file,
                                               const ExecutorOptions& options) {
  const CudaDriver* driver = options.driver;
  if (driver == nullptr) {
    KILN_ASSIGN_OR_RETURN(driver, LoadCudaDriver());
  }
  KILN_ASSIGN_OR_RETURN(const CudaGpu gpu, FindGpu(*driver, options.gpu));
  KILN_RETURN_IF_ERROR(CheckThisGpu(file->network().target, gpu));
  auto executor = std::make_unique<CudaExecutor>(std::move(file), *driver, gpu);
  KILN_RETURN_IF_ERROR(executor->Start(options.streams));
  return executor;
}

}  // namespace kiln::runtime
