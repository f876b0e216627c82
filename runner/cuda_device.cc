#include "runner/cuda_device.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "base/numbers/integers.h"
#include "runner/canary_reading.h"
#include "runner/changed_calls.h"
#include "runner/compare_state.h"
#include "runner/cuda_kernels.h"
#include "runner/cuda_program.h"
#include "runner/pieces.h"

namespace kiln::runner {

// For the names of the CUDA driver.
using namespace runtime;

namespace {

constexpr uint8_t kCanary = 0xc3;
// Bytes on each side of an argument. Wrong kernels miss by tiles, not by bytes. The guards also
// keep arguments aligned.
constexpr int64_t kGuardBytes = 64 << 10;
constexpr unsigned kThreads = 256;
// The fixed cost of a reading is negligible beside calls that take this long.
constexpr double kLongCall_s = 1e-3;
constexpr int64_t kMaxBlocks = 1024;
constexpr int64_t kMinFlushBytes = 32 << 20;
// The most copies of a program's inputs that its calls use in turns.
constexpr int64_t kMostCopies = 256;
constexpr int64_t kMinCanaryBytes = 64 << 20;
// Launches of each kernel of the canary in a span, 1 to 3 ms of a large GPU.
constexpr int kCanaryLaunches = 32;
// Bytes that are copied at once when two inputs change places.
constexpr size_t kExchangedBytes = size_t{16} << 20;
// Time for which the GPU is held while a graph is sent to it for the first time.
constexpr int64_t kGraphLeadIn_ns = 200'000;
// Bytes of the elements of an output that are looked at.
constexpr size_t kSampleBytes = 8 * size_t{kMostSampled};
// Questions of an inspection that are answered together.
constexpr size_t kMaxQuestions = 64;
// Time to wait actively. Most waits are this short. To sleep and be woken takes as long, and takes
// milliseconds while every core compiles.
constexpr double kSpin_s = 200e-6;
// Freed memory that is kept for the next trial, because most trials want the same sizes.
constexpr int64_t kMaxPooledBytes = int64_t{1} << 30;

// Keeps blocks of device memory by size, because freeing waits for the whole GPU and allocating is
// slow as well.
class MemoryPool {
 public:
  explicit MemoryPool(const CudaDriver& driver) : driver_(driver) {}
  ~MemoryPool() { Clear(); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  CuResult Take(size_t bytes, CuPointer* block) {
    const auto kept = free_.find(bytes);
    if (kept == free_.end()) {
      CuResult result = driver_.MemAlloc(block, bytes);
      if (result == kCuOutOfMemory && !free_.empty()) {
        Clear();
        result = driver_.MemAlloc(block, bytes);
      }
      return result;
    }
    *block = kept->second;
    bytes_ -= static_cast<int64_t>(bytes);
    free_.erase(kept);
    return 0;
  }

  void Return(size_t bytes, CuPointer block) {
    if (bytes_ + static_cast<int64_t>(bytes) > kMaxPooledBytes) Clear();
    if (static_cast<int64_t>(bytes) > kMaxPooledBytes) {
      driver_.MemFree(block);
      return;
    }
    free_.emplace(bytes, block);
    bytes_ += static_cast<int64_t>(bytes);
  }

  int64_t bytes() const { return bytes_; }

  // Fails if the context is lost; then the end of the process frees the memory.
  void Clear() {
    for (const auto& [bytes, block] : free_) driver_.MemFree(block);
    free_.clear();
    bytes_ = 0;
  }

 private:
  const CudaDriver& driver_;
  std::multimap<size_t, CuPointer> free_;
  int64_t bytes_ = 0;
};

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(Argument argument, MemoryPool& pool, CuPointer block)
      : Buffer(std::move(argument)), pool_(pool), block_(block) {}
  ~CudaBuffer() override { pool_.Return(BlockBytes(argument()), block_); }

  static size_t BlockBytes(const Argument& argument) {
    return static_cast<size_t>(argument.bytes + 2 * kGuardBytes);
  }
  size_t bytes() const { return static_cast<size_t>(argument().bytes); }
  CuPointer before() const { return block_; }
  CuPointer data() const { return block_ + kGuardBytes; }
  CuPointer after() const { return data() + bytes(); }

 private:
  MemoryPool& pool_;
  const CuPointer block_;
};

CudaBuffer& AsCuda(Buffer& buffer) { return static_cast<CudaBuffer&>(buffer); }
const CudaBuffer& AsCuda(const Buffer& buffer) { return static_cast<const CudaBuffer&>(buffer); }
bool IsInput(const Buffer& buffer) { return buffer.argument().role == v1::ArgSpec::INPUT; }

std::vector<CuPointer> PlacesOf(std::span<Buffer* const> args) {
  std::vector<CuPointer> places;
  for (const Buffer* buffer : args) places.push_back(AsCuda(*buffer).data());
  return places;
}

class CudaDevice : public Device {
 public:
  CudaDevice(const CudaDriver& driver, const CudaGpu& gpu, const CudaDeviceOptions& options)
      : driver_(driver), gpu_(gpu), options_(options), pool_(driver) {}
  ~CudaDevice() override;
  Status Start();

  std::string Name() const override { return gpu_.name; }
  int64_t FreeMemoryBytes() const override;
  StatusOr<std::unique_ptr<Program>> Load(const v1::Artifact& artifact) override;
  StatusOr<std::unique_ptr<Buffer>> Allocate(const Argument& argument) override;
  Status Fill(Buffer& buffer, std::span<const std::byte> bytes) override;
  Status Substitute(Buffer& input, Buffer& other) override;
  Status Restore(Buffer& input, Buffer& other) override { return Substitute(input, other); }
  Status Poison(Buffer& buffer, runner::Poison poison) override;
  StatusOr<PrivateBytes> Fetch(const Buffer& buffer) override;
  StatusOr<uint64_t> Checksum(const Buffer& buffer) override;
  StatusOr<Comparison> Compare(const Buffer& got, const Buffer& want,
                               const v1::Tolerance& tolerance) override;
  Status CheckGuards(const Buffer& buffer) override;
  StatusOr<Findings> Inspect(const Inspection& inspection) override;
  Status Run(Program& program, std::span<Buffer* const> args) override;
  StatusOr<double> Time(Program& program, std::span<Buffer* const> args, int64_t number) override;
  StatusOr<std::optional<ChangedResult>> TimeChanged(Program& program,
                                                     std::span<Buffer* const> args,
                                                     const ChangedCalls& calls,
                                                     std::span<const Inspection::Pair> expected,
                                                     const v1::Tolerance& tolerance) override;
  StatusOr<std::unique_ptr<RotatedCalls>> Rotate(Program& program,
                                                 std::span<Buffer* const> args) override;
  void FlushCaches() override;
  void LaunchSingly(bool singly) override { singly_ = singly; }
  int64_t CallsPerReading(int64_t wanted, double call_s) const override;
  StatusOr<double> TimeCanary() override;
  bool Usable() override;

 private:
  class Rotated;

  struct Kernels {
    CuFunction largest = nullptr;
    CuFunction compare = nullptr;
    CuFunction checksum = nullptr;
    CuFunction guards = nullptr;
    CuFunction change = nullptr;
    CuFunction sample = nullptr;
    CuFunction lead_in = nullptr;
  };

  Status Check(CuResult result, std::string_view what) const { return driver_.Check(result, what); }
  Status Synchronize(std::string_view what);
  // The kernel strides over `elements`.
  template <typename... Args>
  Status Launch(CuFunction kernel, int64_t elements, Args... args);
  Status CopyOut(CuPointer from, std::span<std::byte> into);
  // Queues a question that is answered at `state`.
  Status AskGuards(const CudaBuffer& buffer, CuPointer state);
  Status AskSum(const CudaBuffer& buffer, CuPointer state);
  Status AskDifference(const Inspection::Pair& pair, const v1::Tolerance& tolerance,
                       CuPointer state);
  Status InspectSome(const Inspection& inspection, size_t from, size_t count, Findings& findings);
  StatusOr<Comparison> ComparisonOf(const Inspection::Pair& pair, const CompareState& state,
                                    const v1::Tolerance& tolerance);
  Status DescribeStrayWrite(const CudaBuffer& buffer);
  bool HasGraphs() const { return options_.graph_calls > 0 && !singly_; }
  // Returns the seconds of a span of the canary, which reads `bytes` at `memory`.
  StatusOr<double> TimeCanarySpan(CuPointer memory, int64_t bytes);
  // Records what `queue` queues.
  Status Record(absl::FunctionRef<Status()> queue, CuGraphExec* graph);
  // Returns the seconds between two events around what `queue` queues. The GPU is held for the
  // lead-in meanwhile.
  StatusOr<double> TimeQueued(int64_t lead_in_ns, absl::FunctionRef<Status()> queue);
  // A program's calls with changed arguments. `samples` is memory for kSampleBytes of each output
  // of each call.
  struct ChangingCalls;
  Status QueueChanging(const ChangingCalls& calls, const CudaProgram* program, CuPointer samples);
  StatusOr<double> TimeChanging(const ChangingCalls& calls, const CudaProgram* program,
                                CuPointer samples);
  // Queues a copy of the elements of a buffer that are looked at.
  Status TakeSample(const Buffer& buffer, uint64_t seed, CuPointer into);
  StatusOr<std::vector<Status>> CheckSamples(std::span<const Inspection::Pair> expected,
                                             const v1::Tolerance& tolerance, uint64_t seed,
                                             CuPointer got, CuPointer want);
  // The places of a program's arguments, which its calls use in turns.
  using Places = std::vector<std::vector<CuPointer>>;
  // Queues `number` calls, of which the first one has the arguments at `places[first]`.
  Status QueueCalls(const CudaProgram& program, const Places& places, size_t first, int64_t number);
  // The same; `graph` holds `graph_calls` of them.
  Status Queue(const CudaProgram& program, const Places& places, size_t first, int64_t number,
               CuGraphExec graph, int64_t graph_calls);
  // Returns the number of calls that one graph holds: each place is in it equally often.
  int64_t GraphCalls(const Places& places) const {
    return RoundUp(options_.graph_calls, static_cast<int64_t>(places.size()));
  }
  StatusOr<double> TimeCalls(const CudaProgram& program, const Places& places, size_t first,
                             int64_t number);
  int64_t CallsPerReading(int64_t wanted, double call_s, int64_t graph_calls) const {
    return !HasGraphs() || call_s >= kLongCall_s ? wanted : RoundUp(wanted, graph_calls);
  }
  // Returns bytes that together are far more than the second-level cache holds.
  size_t FlushBytes() const {
    return static_cast<size_t>(std::max(2 * gpu_.l2_bytes, kMinFlushBytes));
  }

  const CudaDriver& driver_;
  const CudaGpu gpu_;
  const CudaDeviceOptions options_;
  // See LaunchSingly.
  bool singly_ = false;
  bool has_context_ = false;
  CuStream stream_ = nullptr;
  CuEvent start_ = nullptr;
  CuEvent end_ = nullptr;
  CuModule module_ = nullptr;
  Kernels kernels_;
  MemoryPool pool_;
  // Memory for kMaxQuestions of CompareState.
  CuPointer scratch_ = 0;
  // The same number in pinned memory, so that copies do not wait for each other.
  CompareState* answers_ = nullptr;
  CuPointer flush_ = 0;
  uint8_t flush_value_ = 0;
};

Status CudaDevice::Start() {
  // Waiting threads sleep, because others need the host's cores. The driver refuses this if the
  // context exists.
  driver_.PrimaryCtxSetFlags(gpu_.handle, kCuContextBlockingSync);
  CuContext context = nullptr;
  KILN_RETURN_IF_ERROR(Check(driver_.PrimaryCtxRetain(&context, gpu_.handle),
                             fmt::format("make a context on GPU {}", gpu_.ordinal)));
  has_context_ = true;
  KILN_RETURN_IF_ERROR(Check(driver_.CtxSetCurrent(context), "use the context"));
  KILN_RETURN_IF_ERROR(
      Check(driver_.StreamCreate(&stream_, kCuStreamNonBlocking), "make a stream"));
  KILN_RETURN_IF_ERROR(Check(driver_.EventCreate(&start_, kCuEventDefault), "make an event"));
  KILN_RETURN_IF_ERROR(Check(driver_.EventCreate(&end_, kCuEventDefault), "make an event"));
  const size_t scratch_bytes = kMaxQuestions * sizeof(CompareState);
  KILN_RETURN_IF_ERROR(Check(driver_.MemAlloc(&scratch_, scratch_bytes), "allocate"));
  void* answers = nullptr;
  KILN_RETURN_IF_ERROR(Check(driver_.MemAllocHost(&answers, scratch_bytes), "allocate"));
  answers_ = static_cast<CompareState*>(answers);
  KILN_RETURN_IF_ERROR(Check(driver_.ModuleLoadData(&module_, CudaKernelsPtx()),
                             "compile the runner's own kernels"));
  const std::pair<const char*, CuFunction*> wanted[] = {
      {"kiln_largest", &kernels_.largest},   {"kiln_compare", &kernels_.compare},
      {"kiln_checksum", &kernels_.checksum}, {"kiln_guards", &kernels_.guards},
      {"kiln_change", &kernels_.change},     {"kiln_sample", &kernels_.sample},
      {"kiln_lead_in", &kernels_.lead_in},
  };
  for (const auto& [name, function] : wanted) {
    KILN_RETURN_IF_ERROR(Check(driver_.ModuleGetFunction(function, module_, name), name));
  }
  // The first launch of a module is slow, so it is done now.
  KILN_RETURN_IF_ERROR(Launch(kernels_.lead_in, 1, uint64_t{0}));
  return Synchronize("run the runner's own kernels");
}

CudaDevice::~CudaDevice() {
  if (!has_context_) return;
  pool_.Clear();
  if (flush_ != 0) driver_.MemFree(flush_);
  if (answers_ != nullptr) driver_.MemFreeHost(answers_);
  if (scratch_ != 0) driver_.MemFree(scratch_);
  if (module_ != nullptr) driver_.ModuleUnload(module_);
  if (start_ != nullptr) driver_.EventDestroy(start_);
  if (end_ != nullptr) driver_.EventDestroy(end_);
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
  driver_.PrimaryCtxRelease(gpu_.handle);
}

// Spins until the stream is done or this takes long, then sleeps.
Status CudaDevice::Synchronize(std::string_view what) {
  Clock& clock = Clock::Real();
  const double start_s = clock.MonotonicSeconds();
  do {
    const CuResult result = driver_.StreamQuery(stream_);
    if (result != kCuNotReady) return Check(result, what);
  } while (clock.MonotonicSeconds() - start_s < kSpin_s);
  return Check(driver_.StreamSynchronize(stream_), what);
}

bool CudaDevice::Usable() { return driver_.CtxSynchronize() == 0; }

int64_t CudaDevice::FreeMemoryBytes() const {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (driver_.MemGetInfo(&free_bytes, &total_bytes) != 0) return 0;
  return static_cast<int64_t>(free_bytes) + pool_.bytes();
}

StatusOr<std::unique_ptr<Program>> CudaDevice::Load(const v1::Artifact& artifact) {
  return CudaProgram::Load(driver_, gpu_, artifact);
}

template <typename... Args>
Status CudaDevice::Launch(CuFunction kernel, int64_t elements, Args... args) {
  void* parameters[] = {&args...};
  const int64_t blocks = std::clamp<int64_t>(CeilDiv(elements, kThreads), 1, kMaxBlocks);
  return Check(
      driver_.LaunchKernel(kernel, static_cast<unsigned>(blocks), 1, 1,
                           elements == 1 ? 1 : kThreads, 1, 1, 0, stream_, parameters, nullptr),
      "launch a kernel of the runner");
}

Status CudaDevice::CopyOut(CuPointer from, std::span<std::byte> into) {
  KILN_RETURN_IF_ERROR(
      Check(driver_.MemcpyDtoHAsync(into.data(), from, into.size(), stream_), "copy from the GPU"));
  return Synchronize("copy from the GPU");
}

StatusOr<std::unique_ptr<Buffer>> CudaDevice::Allocate(const Argument& argument) {
  KILN_CHECK(argument.alignment_bytes <= kGuardBytes, "alignment {}", argument.alignment_bytes);
  CuPointer block = 0;
  KILN_RETURN_IF_ERROR(
      Check(pool_.Take(CudaBuffer::BlockBytes(argument), &block),
            fmt::format("allocate {} bytes for argument '{}'", argument.bytes, argument.name)));
  auto buffer = std::make_unique<CudaBuffer>(argument, pool_, block);
  for (const CuPointer guard : {buffer->before(), buffer->after()}) {
    KILN_RETURN_IF_ERROR(Check(driver_.MemsetD8Async(guard, kCanary, kGuardBytes, stream_),
                               "set the guards of an argument"));
  }
  return buffer;
}

Status CudaDevice::Fill(Buffer& buffer, std::span<const std::byte> bytes) {
  const CudaBuffer& into = AsCuda(buffer);
  KILN_CHECK(into.bytes() == bytes.size(), "{} bytes into {}", bytes.size(), into.bytes());
  KILN_RETURN_IF_ERROR(
      Check(driver_.MemcpyHtoDAsync(into.data(), bytes.data(), bytes.size(), stream_),
            "copy to the GPU"));
  return Synchronize("copy to the GPU");
}

// Swaps the contents of two buffers piece by piece, so that no third copy of a large input is
// needed.
Status CudaDevice::Substitute(Buffer& input, Buffer& other) {
  const size_t bytes = AsCuda(input).bytes();
  KILN_CHECK(bytes == AsCuda(other).bytes(), "{} bytes for {}", AsCuda(other).bytes(), bytes);
  const size_t piece_bytes = std::min(bytes, kExchangedBytes);
  CuPointer piece = 0;
  KILN_RETURN_IF_ERROR(Check(pool_.Take(piece_bytes, &piece), "allocate memory for a copy"));
  const auto copy = [&](CuPointer to, CuPointer from, size_t count) {
    return Check(driver_.MemcpyDtoDAsync(to, from, count, stream_), "copy on the GPU");
  };
  Status status;
  for (size_t at = 0; at < bytes && status.ok(); at += piece_bytes) {
    const size_t count = std::min(piece_bytes, bytes - at);
    const CuPointer a = AsCuda(input).data() + at, b = AsCuda(other).data() + at;
    status = copy(piece, a, count);
    if (status.ok()) status = copy(a, b, count);
    if (status.ok()) status = copy(b, piece, count);
  }
  // The next use of the piece is queued behind the copies.
  pool_.Return(piece_bytes, piece);
  return status;
}

Status CudaDevice::Poison(Buffer& buffer, runner::Poison poison) {
  const CudaBuffer& into = AsCuda(buffer);
  return Check(driver_.MemsetD8Async(into.data(), PoisonByte(into.argument().dtype, poison),
                                     into.bytes(), stream_),
               "poison an argument");
}

StatusOr<PrivateBytes> CudaDevice::Fetch(const Buffer& buffer) {
  PrivateBytes bytes(AsCuda(buffer).bytes());
  TouchPages(bytes);
  KILN_RETURN_IF_ERROR(CopyOut(AsCuda(buffer).data(), bytes));
  return bytes;
}

Status CudaDevice::AskGuards(const CudaBuffer& buffer, CuPointer state) {
  return Launch(kernels_.guards, kGuardBytes, buffer.before(), buffer.after(), kGuardBytes,
                uint32_t{kCanary}, state);
}

Status CudaDevice::AskSum(const CudaBuffer& buffer, CuPointer state) {
  const int64_t bytes = buffer.argument().bytes;
  // The sum goes where CompareState has `largest`.
  return Launch(kernels_.checksum, std::max<int64_t>(2, bytes / 8), buffer.data(), bytes, state);
}

Status CudaDevice::AskDifference(const Inspection::Pair& pair, const v1::Tolerance& asked,
                                 CuPointer state) {
  const Argument& argument = pair.got->argument();
  const v1::Tolerance tolerance = EffectiveTolerance(argument.dtype, asked);
  const int dtype = static_cast<int>(argument.dtype);
  const int64_t elements = argument.elements;
  const int64_t strides = std::max<int64_t>(2, elements);
  const CuPointer want = AsCuda(*pair.want).data();
  KILN_RETURN_IF_ERROR(Launch(kernels_.largest, strides, want, elements, dtype, state));
  return Launch(kernels_.compare, strides, AsCuda(*pair.got).data(), want, elements, dtype,
                MinTolerance(argument.dtype), tolerance.absolute(), tolerance.relative(), state);
}

StatusOr<Comparison> CudaDevice::ComparisonOf(const Inspection::Pair& pair,
                                              const CompareState& state,
                                              const v1::Tolerance& tolerance) {
  const Argument& argument = pair.got->argument();
  Comparison comparison;
  comparison.different = static_cast<int64_t>(state.different);
  const double largest = std::bit_cast<double>(state.largest);
  const double worst = std::bit_cast<double>(state.worst);
  comparison.max_error = largest > 0 ? worst / largest : worst;
  if (comparison.different == 0) return comparison;
  const size_t element_bytes = static_cast<size_t>(DTypeBytes(argument.dtype));
  std::byte got[8];
  std::byte want[8];
  const uint64_t offset = state.first * element_bytes;
  KILN_RETURN_IF_ERROR(CopyOut(AsCuda(*pair.got).data() + offset, {got, element_bytes}));
  KILN_RETURN_IF_ERROR(CopyOut(AsCuda(*pair.want).data() + offset, {want, element_bytes}));
  comparison.message =
      DescribeDifference(argument, static_cast<int64_t>(state.first), {got, element_bytes},
                         {want, element_bytes}, comparison.different, tolerance);
  return comparison;
}

// Asks `count` questions from number `from` on, counted through guards, sums and pairs. Needs one
// copy to the GPU, one copy back and one wait.
Status CudaDevice::InspectSome(const Inspection& inspection, size_t from, size_t count,
                               Findings& findings) {
  const size_t guards = inspection.guards.size();
  const size_t sums = inspection.sums.size();
  const size_t bytes = count * sizeof(CompareState);
  std::fill_n(answers_, count, CompareState{});
  KILN_RETURN_IF_ERROR(
      Check(driver_.MemcpyHtoDAsync(scratch_, answers_, bytes, stream_), "copy to the GPU"));
  for (size_t i = from; i < from + count; ++i) {
    const CuPointer state = scratch_ + (i - from) * sizeof(CompareState);
    if (i < guards) {
      KILN_RETURN_IF_ERROR(AskGuards(AsCuda(*inspection.guards[i]), state));
    } else if (i < guards + sums) {
      KILN_RETURN_IF_ERROR(AskSum(AsCuda(*inspection.sums[i - guards]), state));
    } else {
      KILN_RETURN_IF_ERROR(
          AskDifference(inspection.pairs[i - guards - sums], inspection.tolerance, state));
    }
  }
  KILN_RETURN_IF_ERROR(
      Check(driver_.MemcpyDtoHAsync(answers_, scratch_, bytes, stream_), "copy from the GPU"));
  KILN_RETURN_IF_ERROR(Synchronize("check the arguments"));
  for (size_t i = from; i < from + count; ++i) {
    const CompareState& state = answers_[i - from];
    if (i < guards) {
      findings.guards.push_back(
          state.largest == 0 ? OkStatus() : DescribeStrayWrite(AsCuda(*inspection.guards[i])));
    } else if (i < guards + sums) {
      findings.sums.push_back(state.largest);
    } else {
      KILN_ASSIGN_OR_RETURN(Comparison comparison, ComparisonOf(inspection.pairs[i - guards - sums],
                                                                state, inspection.tolerance));
      findings.comparisons.push_back(std::move(comparison));
    }
  }
  return OkStatus();
}

StatusOr<Findings> CudaDevice::Inspect(const Inspection& inspection) {
  Findings findings;
  const size_t all = inspection.guards.size() + inspection.sums.size() + inspection.pairs.size();
  for (size_t from = 0; from < all; from += kMaxQuestions) {
    KILN_RETURN_IF_ERROR(
        InspectSome(inspection, from, std::min(kMaxQuestions, all - from), findings));
  }
  return findings;
}

StatusOr<uint64_t> CudaDevice::Checksum(const Buffer& buffer) {
  KILN_ASSIGN_OR_RETURN(const Findings findings, Inspect({.sums = {&buffer}}));
  return findings.sums[0];
}

StatusOr<Comparison> CudaDevice::Compare(const Buffer& got, const Buffer& want,
                                         const v1::Tolerance& tolerance) {
  KILN_ASSIGN_OR_RETURN(Findings findings,
                        Inspect({.pairs = {{&got, &want}}, .tolerance = tolerance}));
  return std::move(findings.comparisons[0]);
}

Status CudaDevice::CheckGuards(const Buffer& buffer) {
  KILN_ASSIGN_OR_RETURN(const Findings findings, Inspect({.guards = {&buffer}}));
  return findings.guards[0];
}

// Reports the nearest change, and restores the guards.
Status CudaDevice::DescribeStrayWrite(const CudaBuffer& buffer) {
  std::vector<std::byte> before(kGuardBytes);
  std::vector<std::byte> after(kGuardBytes);
  KILN_RETURN_IF_ERROR(CopyOut(buffer.before(), before));
  KILN_RETURN_IF_ERROR(CopyOut(buffer.after(), after));
  for (const CuPointer guard : {buffer.before(), buffer.after()}) {
    KILN_RETURN_IF_ERROR(Check(driver_.MemsetD8Async(guard, kCanary, kGuardBytes, stream_),
                               "set the guards of an argument"));
  }
  const auto changed = [](std::byte byte) { return byte != std::byte{kCanary}; };
  const std::string& name = buffer.argument().name;
  const auto behind = std::find_if(after.begin(), after.end(), changed);
  if (behind != after.end()) {
    return Internal("write outside of argument '{}': {} bytes after its end", name,
                    behind - after.begin());
  }
  const auto ahead = std::find_if(before.rbegin(), before.rend(), changed);
  return Internal("write outside of argument '{}': {} bytes before its start", name,
                  ahead - before.rbegin() + 1);
}

Status CudaDevice::Record(absl::FunctionRef<Status()> queue, CuGraphExec* graph) {
  KILN_RETURN_IF_ERROR(
      Check(driver_.StreamBeginCapture(stream_, kCuCaptureThreadLocal), "record a graph"));
  Status status = queue();
  CuGraph recorded = nullptr;
  // The recording ends also after an error, because the stream must leave the recording.
  const CuResult ended = driver_.StreamEndCapture(stream_, &recorded);
  if (status.ok()) status = Check(ended, "record a graph");
  if (status.ok()) {
    status = Check(driver_.GraphInstantiate(graph, recorded, 0), "instantiate a graph");
  }
  if (recorded != nullptr) driver_.GraphDestroy(recorded);
  return status;
}

Status CudaDevice::QueueCalls(const CudaProgram& program, const Places& places, size_t first,
                              int64_t number) {
  std::vector<CuPointer> pointers;
  for (size_t call = first; call < first + static_cast<size_t>(number); ++call) {
    pointers = places[call % places.size()];
    KILN_RETURN_IF_ERROR(program.Launch(stream_, pointers));
  }
  return OkStatus();
}

Status CudaDevice::Queue(const CudaProgram& program, const Places& places, size_t first,
                         int64_t number, CuGraphExec graph, int64_t graph_calls) {
  int64_t left = number;
  for (; graph != nullptr && left >= graph_calls; left -= graph_calls) {
    KILN_RETURN_IF_ERROR(Check(driver_.GraphLaunch(graph, stream_), "launch a graph"));
  }
  return QueueCalls(program, places, first, left);
}

StatusOr<double> CudaDevice::TimeQueued(int64_t lead_in_ns, absl::FunctionRef<Status()> queue) {
  if (lead_in_ns > 0) {
    KILN_RETURN_IF_ERROR(Launch(kernels_.lead_in, 1, static_cast<uint64_t>(lead_in_ns)));
  }
  Status status = Check(driver_.EventRecord(start_, stream_), "record the start");
  if (status.ok()) status = queue();
  if (status.ok()) status = Check(driver_.EventRecord(end_, stream_), "record the end");
  // The wait happens also after an error, because no work may run on into the next call. The second
  // one is for the whole GPU: work that a kernel launched elsewhere ends in the span of the program
  // that launched it, and not when it is checked.
  Status ended = Synchronize("run the program");
  if (ended.ok()) ended = Check(driver_.CtxSynchronize(), "run the program");
  KILN_RETURN_IF_ERROR(status.ok() ? ended : status);
  float milliseconds = 0;
  KILN_RETURN_IF_ERROR(
      Check(driver_.EventElapsedTime(&milliseconds, start_, end_), "read the time"));
  return 1e-3 * static_cast<double>(milliseconds);
}

StatusOr<double> CudaDevice::TimeCalls(const CudaProgram& program, const Places& places,
                                       size_t first, int64_t number) {
  const int64_t graph_calls = GraphCalls(places);
  CuGraphExec graph = nullptr;
  if (HasGraphs() && number >= graph_calls) {
    KILN_RETURN_IF_ERROR(
        Record([&] { return QueueCalls(program, places, first, graph_calls); }, &graph));
  }
  StatusOr<double> seconds = TimeQueued(options_.lead_in_ns, [&] {
    return Queue(program, places, first, number, graph, graph_calls);
  });
  if (graph != nullptr) driver_.GraphExecDestroy(graph);
  return seconds;
}

StatusOr<double> CudaDevice::Time(Program& program, std::span<Buffer* const> args, int64_t number) {
  return TimeCalls(static_cast<const CudaProgram&>(program), {PlacesOf(args)}, 0, number);
}

class CudaDevice::Rotated : public RotatedCalls {
 public:
  Rotated(CudaDevice& device, const CudaProgram& program) : device_(device), program_(program) {}
  ~Rotated() override {
    for (const auto& [bytes, block] : blocks_) device_.pool_.Return(bytes, block);
  }
  Rotated(const Rotated&) = delete;
  Rotated& operator=(const Rotated&) = delete;

  Status Copy(std::span<Buffer* const> args, int64_t copies) {
    const std::vector<CuPointer> own = PlacesOf(args);
    places_.push_back(own);
    while (static_cast<int64_t>(places_.size()) < copies) {
      places_.push_back(own);
      for (size_t i = 0; i < args.size(); ++i) {
        if (IsInput(*args[i])) KILN_RETURN_IF_ERROR(CopyTo(places_.back()[i], AsCuda(*args[i])));
      }
    }
    return OkStatus();
  }

  StatusOr<double> Time(int64_t number) override {
    const size_t first = next_;
    next_ = (next_ + static_cast<size_t>(number)) % places_.size();
    return device_.TimeCalls(program_, places_, first, number);
  }

  int64_t PerReading(int64_t wanted, double call_s) const override {
    return device_.CallsPerReading(wanted, call_s, device_.GraphCalls(places_));
  }

 private:
  Status CopyTo(CuPointer& place, const CudaBuffer& input) {
    KILN_RETURN_IF_ERROR(
        device_.Check(device_.pool_.Take(input.bytes(), &place), "allocate a copy of an input"));
    blocks_.emplace_back(input.bytes(), place);
    return device_.Check(
        device_.driver_.MemcpyDtoDAsync(place, input.data(), input.bytes(), device_.stream_),
        "copy an input");
  }

  CudaDevice& device_;
  const CudaProgram& program_;
  Places places_;
  // The place of the next call's arguments.
  size_t next_ = 0;
  // Memory of the copies, with its bytes.
  std::vector<std::pair<size_t, CuPointer>> blocks_;
};

// The copies besides those of one call hold far more than the cache does, so that a call reads its
// inputs from memory. Inputs of few bytes would need too many copies.
StatusOr<std::unique_ptr<RotatedCalls>> CudaDevice::Rotate(Program& program,
                                                           std::span<Buffer* const> args) {
  size_t bytes = 0;
  for (const Buffer* buffer : args) bytes += IsInput(*buffer) ? AsCuda(*buffer).bytes() : 0;
  if (bytes == 0) return nullptr;
  const int64_t copies =
      1 + CeilDiv(static_cast<int64_t>(FlushBytes()), static_cast<int64_t>(bytes));
  if (copies > kMostCopies) return nullptr;
  auto rotated = std::make_unique<Rotated>(*this, static_cast<const CudaProgram&>(program));
  KILN_RETURN_IF_ERROR(rotated->Copy(args, copies));
  return rotated;
}

struct CudaDevice::ChangingCalls {
  ChangedCalls calls;
  std::vector<Buffer*> args = {};
  std::vector<CuPointer> pointers = {};
  // For each argument: its changes.
  std::vector<std::vector<Change>> changes = {};
  std::vector<const Buffer*> outputs = {};
};

Status CudaDevice::TakeSample(const Buffer& buffer, uint64_t seed, CuPointer into) {
  const int64_t elements = buffer.argument().elements;
  const int64_t samples = std::min(elements, kMostSampled);
  return Launch(kernels_.sample, std::max<int64_t>(2, samples), AsCuda(buffer).data(), elements,
                DTypeBytes(buffer.argument().dtype), seed, into, samples);
}

// Without a program only what runs between its calls is queued.
Status CudaDevice::QueueChanging(const ChangingCalls& changing, const CudaProgram* program,
                                 CuPointer samples) {
  std::vector<CuPointer> pointers = changing.pointers;
  for (int call = 0; call < changing.calls.calls; ++call) {
    for (size_t i = 0; i < changing.args.size(); ++i) {
      if (changing.changes[i].empty()) continue;
      const Argument& argument = changing.args[i]->argument();
      const int64_t width = DTypeBytes(argument.dtype), count = argument.bytes / width;
      const int number = program != nullptr ? call : changing.calls.calls + call;
      const Change& change = changing.changes[i][static_cast<size_t>(number)];
      KILN_RETURN_IF_ERROR(Launch(kernels_.change, std::max<int64_t>(2, count), pointers[i], count,
                                  width, change.mask, change.flip, change.from, change.to));
    }
    if (program != nullptr) KILN_RETURN_IF_ERROR(program->Launch(stream_, pointers));
    for (const Buffer* output : changing.outputs) {
      KILN_RETURN_IF_ERROR(TakeSample(*output, changing.calls.seed, samples));
      samples += kSampleBytes;
    }
  }
  return OkStatus();
}

// All calls are one graph, so that the speed of the host does not count and the program sees no
// difference between them.
StatusOr<double> CudaDevice::TimeChanging(const ChangingCalls& changing, const CudaProgram* program,
                                          CuPointer samples) {
  CuGraphExec graph = nullptr;
  KILN_RETURN_IF_ERROR(Record([&] { return QueueChanging(changing, program, samples); }, &graph));
  StatusOr<double> seconds = TimeQueued(kGraphLeadIn_ns, [&] {
    return Check(driver_.GraphLaunch(graph, stream_), "launch a graph");
  });
  driver_.GraphExecDestroy(graph);
  return seconds;
}

// The samples lie one behind the other.
StatusOr<std::vector<Status>> CudaDevice::CheckSamples(std::span<const Inspection::Pair> expected,
                                                       const v1::Tolerance& asked, uint64_t seed,
                                                       CuPointer got, CuPointer want) {
  std::vector<Status> outputs;
  for (const Inspection::Pair& pair : expected) {
    const Argument& argument = pair.got->argument();
    const v1::Tolerance tolerance = EffectiveTolerance(argument.dtype, asked);
    const int dtype = static_cast<int>(argument.dtype);
    const int64_t samples = std::min(argument.elements, kMostSampled);
    answers_[0] = {};
    KILN_RETURN_IF_ERROR(
        Check(driver_.MemcpyHtoDAsync(scratch_, answers_, sizeof(CompareState), stream_),
              "copy to the GPU"));
    KILN_RETURN_IF_ERROR(TakeSample(*pair.want, seed, want));
    // The tolerance is a part of the largest element of the whole output.
    KILN_RETURN_IF_ERROR(Launch(kernels_.largest, std::max<int64_t>(2, argument.elements),
                                AsCuda(*pair.want).data(), argument.elements, dtype, scratch_));
    KILN_RETURN_IF_ERROR(Launch(kernels_.compare, std::max<int64_t>(2, samples), got, want, samples,
                                dtype, MinTolerance(argument.dtype), tolerance.absolute(),
                                tolerance.relative(), scratch_));
    KILN_RETURN_IF_ERROR(
        Check(driver_.MemcpyDtoHAsync(answers_, scratch_, sizeof(CompareState), stream_),
              "copy from the GPU"));
    KILN_RETURN_IF_ERROR(Synchronize("check the outputs"));
    const uint64_t different = answers_[0].different;
    outputs.push_back(different == 0
                          ? OkStatus()
                          : InvalidArgument("output {}: {} of {} elements that were looked at "
                                            "differ",
                                            argument.name, different, samples));
    got += kSampleBytes;
  }
  return outputs;
}

StatusOr<std::optional<ChangedResult>> CudaDevice::TimeChanged(
    Program& program, std::span<Buffer* const> args, const ChangedCalls& calls,
    std::span<const Inspection::Pair> expected, const v1::Tolerance& tolerance) {
  ChangingCalls changing{.calls = calls, .args = {args.begin(), args.end()}};
  changing.pointers = PlacesOf(args);
  for (size_t i = 0; i < args.size(); ++i) {
    changing.changes.push_back(ChangesOf(args[i]->argument(), i, calls));
  }
  for (const Inspection::Pair& pair : expected) changing.outputs.push_back(pair.got);
  // The program's samples come first, then those of the calls without it, then the expected one.
  const size_t of_calls = static_cast<size_t>(calls.calls) * expected.size() * kSampleBytes;
  const size_t bytes = 2 * of_calls + kSampleBytes;
  CuPointer samples = 0;
  KILN_RETURN_IF_ERROR(Check(pool_.Take(bytes, &samples), "allocate memory for a check"));
  const auto run = [&]() -> StatusOr<std::optional<ChangedResult>> {
    KILN_ASSIGN_OR_RETURN(
        const double all_s,
        TimeChanging(changing, static_cast<const CudaProgram*>(&program), samples));
    KILN_ASSIGN_OR_RETURN(const double own_s, TimeChanging(changing, nullptr, samples + of_calls));
    const size_t before_checked = static_cast<size_t>(calls.checked) * expected.size();
    ChangedResult result;
    result.call_s = std::max(0.0, all_s - own_s) / calls.calls;
    KILN_ASSIGN_OR_RETURN(result.outputs, CheckSamples(expected, tolerance, calls.seed,
                                                       samples + before_checked * kSampleBytes,
                                                       samples + 2 * of_calls));
    return result;
  };
  auto result = run();
  pool_.Return(bytes, samples);
  return result;
}

Status CudaDevice::Run(Program& program, std::span<Buffer* const> args) {
  return Time(program, args, 1).status();
}

// Returns a multiple of a graph's calls. A reading costs one to three microseconds besides its
// calls, and a call that is launched by itself costs the host more time than a short call takes on
// the GPU.
int64_t CudaDevice::CallsPerReading(int64_t wanted, double call_s) const {
  return CallsPerReading(wanted, call_s, options_.graph_calls);
}

StatusOr<double> CudaDevice::TimeCanarySpan(CuPointer memory, int64_t bytes) {
  KILN_RETURN_IF_ERROR(Check(driver_.EventRecord(start_, stream_), "record the start"));
  for (int i = 0; i < kCanaryLaunches; ++i) {
    // The checksum multiplies more than it reads, so that its time is that of the clock of the
    // multiprocessors. The search for the largest element does little but read.
    KILN_RETURN_IF_ERROR(Launch(kernels_.checksum, bytes / 8, memory, bytes, scratch_));
    KILN_RETURN_IF_ERROR(Launch(kernels_.largest, bytes / 8, memory, bytes / 8,
                                static_cast<int>(DType::kFloat64), scratch_));
  }
  KILN_RETURN_IF_ERROR(Check(driver_.EventRecord(end_, stream_), "record the end"));
  KILN_RETURN_IF_ERROR(Synchronize("run the canary"));
  float milliseconds = 0;
  KILN_RETURN_IF_ERROR(
      Check(driver_.EventElapsedTime(&milliseconds, start_, end_), "read the time"));
  return 1e-3 * static_cast<double>(milliseconds);
}

// Returns the seconds of one launch of each kernel.
StatusOr<double> CudaDevice::TimeCanary() {
  const int64_t bytes = options_.canary_bytes > 0 ? options_.canary_bytes
                                                  : std::max(2 * gpu_.l2_bytes, kMinCanaryBytes);
  const size_t block_bytes = static_cast<size_t>(bytes);
  CuPointer memory = 0;
  KILN_RETURN_IF_ERROR(Check(pool_.Take(block_bytes, &memory), "allocate memory for the canary"));
  // The same values each time: the power that a kernel takes depends on them.
  const Status filled =
      Check(driver_.MemsetD8Async(memory, 0x3f, block_bytes, stream_), "fill the canary's memory");
  const StatusOr<double> span_s = SettledSeconds([&]() -> StatusOr<double> {
    KILN_RETURN_IF_ERROR(filled);
    return TimeCanarySpan(memory, bytes);
  });
  pool_.Return(block_bytes, memory);
  KILN_RETURN_IF_ERROR(span_s.status());
  return *span_s / kCanaryLaunches;
}

void CudaDevice::FlushCaches() {
  const size_t bytes = FlushBytes();
  // Without memory for the flush the caches stay as they are.
  if (flush_ == 0 && driver_.MemAlloc(&flush_, bytes) != 0) flush_ = 0;
  if (flush_ != 0) driver_.MemsetD8Async(flush_, ++flush_value_, bytes, stream_);
}

}  // namespace

StatusOr<std::unique_ptr<Device>> MakeCudaDevice(const CudaDriver& driver, const CudaGpu& gpu,
                                                 const CudaDeviceOptions& options) {
  auto device = std::make_unique<CudaDevice>(driver, gpu, options);
  KILN_RETURN_IF_ERROR(device->Start());
  return device;
}

}  // namespace kiln::runner
