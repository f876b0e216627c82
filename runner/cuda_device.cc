#include "runner/cuda_device.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runner/cuda_kernels.h"
#include "runner/cuda_program.h"

namespace kiln::runner {
namespace {

constexpr uint8_t kCanary = 0xc3;
// On each side. Wrong kernels miss by tiles, not by bytes; also keeps arguments aligned.
constexpr int64_t kGuardBytes = 64 << 10;
constexpr unsigned kThreads = 256;
constexpr double kLongCall_s = 1e-3;  // what a reading costs besides is nothing to it
constexpr int64_t kMaxBlocks = 1024;
constexpr int64_t kMinFlushBytes = 32 << 20;

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(Argument argument, const CudaDriver& driver, CuPointer block)
      : Buffer(std::move(argument)), driver_(driver), block_(block) {}
  // Fails when the context is lost; then the process's end frees the memory.
  ~CudaBuffer() override { driver_.MemFree(block_); }

  size_t bytes() const { return static_cast<size_t>(argument().bytes); }
  CuPointer before() const { return block_; }
  CuPointer data() const { return block_ + kGuardBytes; }
  CuPointer after() const { return data() + bytes(); }

 private:
  const CudaDriver& driver_;
  const CuPointer block_;
};

CudaBuffer& AsCuda(Buffer& buffer) { return static_cast<CudaBuffer&>(buffer); }
const CudaBuffer& AsCuda(const Buffer& buffer) { return static_cast<const CudaBuffer&>(buffer); }

class CudaDevice : public Device {
 public:
  CudaDevice(const CudaDriver& driver, const CudaGpu& gpu, const CudaDeviceOptions& options)
      : driver_(driver), gpu_(gpu), options_(options) {}
  ~CudaDevice() override;
  Status Start();

  std::string Name() const override { return gpu_.name; }
  int64_t FreeMemoryBytes() const override;
  StatusOr<std::unique_ptr<Program>> Load(const v1::Artifact& artifact) override;
  StatusOr<std::unique_ptr<Buffer>> Allocate(const Argument& argument) override;
  Status Fill(Buffer& buffer, std::span<const std::byte> bytes) override;
  Status Poison(Buffer& buffer, runner::Poison poison) override;
  StatusOr<std::vector<std::byte>> Fetch(const Buffer& buffer) override;
  StatusOr<uint64_t> Checksum(const Buffer& buffer) override;
  StatusOr<Comparison> Compare(const Buffer& got, const Buffer& want,
                               const v1::Tolerance& tolerance) override;
  Status CheckGuards(const Buffer& buffer) override;
  Status Run(Program& program, std::span<Buffer* const> args) override;
  StatusOr<double> Time(Program& program, std::span<Buffer* const> args, int64_t number) override;
  void FlushCaches() override;
  int64_t CallsPerReading(int64_t wanted, double call_s) const override;
  bool Usable() override;

 private:
  struct Kernels {
    CuFunction largest = nullptr;
    CuFunction compare = nullptr;
    CuFunction checksum = nullptr;
    CuFunction guards = nullptr;
    CuFunction lead_in = nullptr;
  };

  Status Check(CuResult result, std::string_view what) const { return driver_.Check(result, what); }
  Status Synchronize(std::string_view what) {
    return Check(driver_.StreamSynchronize(stream_), what);
  }
  // `elements` is what the kernel strides over.
  template <typename... Args>
  Status Launch(CuFunction kernel, int64_t elements, Args... args);
  Status CopyOut(CuPointer from, std::span<std::byte> into);
  Status ToScratch(const CompareState& state);
  StatusOr<CompareState> FromScratch();
  Status DescribeStrayWrite(const CudaBuffer& buffer);
  Status Record(const CudaProgram& program, std::span<CuPointer> pointers, CuGraphExec* graph);
  Status Queue(const CudaProgram& program, std::span<CuPointer> pointers, int64_t number,
               CuGraphExec graph);

  const CudaDriver& driver_;
  const CudaGpu gpu_;
  const CudaDeviceOptions options_;
  bool has_context_ = false;
  CuStream stream_ = nullptr;
  CuEvent start_ = nullptr;
  CuEvent end_ = nullptr;
  CuModule module_ = nullptr;
  Kernels kernels_;
  CuPointer scratch_ = 0;  // one CompareState
  CuPointer flush_ = 0;
  uint8_t flush_value_ = 0;
};

Status CudaDevice::Start() {
  // Waiting threads sleep: the host's cores are for others. Refused when the context exists.
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
  KILN_RETURN_IF_ERROR(Check(driver_.MemAlloc(&scratch_, sizeof(CompareState)), "allocate"));
  KILN_RETURN_IF_ERROR(Check(driver_.ModuleLoadData(&module_, CudaKernelsPtx()),
                             "compile the runner's own kernels"));
  const std::pair<const char*, CuFunction*> wanted[] = {
      {"kiln_largest", &kernels_.largest},   {"kiln_compare", &kernels_.compare},
      {"kiln_checksum", &kernels_.checksum}, {"kiln_guards", &kernels_.guards},
      {"kiln_lead_in", &kernels_.lead_in},
  };
  for (const auto& [name, function] : wanted) {
    KILN_RETURN_IF_ERROR(Check(driver_.ModuleGetFunction(function, module_, name), name));
  }
  // The first launch of a module is the slow one.
  KILN_RETURN_IF_ERROR(Launch(kernels_.lead_in, 1, uint64_t{0}));
  return Synchronize("run the runner's own kernels");
}

CudaDevice::~CudaDevice() {
  if (!has_context_) return;
  if (flush_ != 0) driver_.MemFree(flush_);
  if (scratch_ != 0) driver_.MemFree(scratch_);
  if (module_ != nullptr) driver_.ModuleUnload(module_);
  if (start_ != nullptr) driver_.EventDestroy(start_);
  if (end_ != nullptr) driver_.EventDestroy(end_);
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
  driver_.PrimaryCtxRelease(gpu_.handle);
}

bool CudaDevice::Usable() { return driver_.CtxSynchronize() == 0; }

int64_t CudaDevice::FreeMemoryBytes() const {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  return driver_.MemGetInfo(&free_bytes, &total_bytes) == 0 ? static_cast<int64_t>(free_bytes) : 0;
}

StatusOr<std::unique_ptr<Program>> CudaDevice::Load(const v1::Artifact& artifact) {
  return CudaProgram::Load(driver_, gpu_, artifact);
}

template <typename... Args>
Status CudaDevice::Launch(CuFunction kernel, int64_t elements, Args... args) {
  void* parameters[] = {&args...};
  const int64_t blocks = std::clamp<int64_t>((elements + kThreads - 1) / kThreads, 1, kMaxBlocks);
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
      Check(driver_.MemAlloc(&block, static_cast<size_t>(argument.bytes + 2 * kGuardBytes)),
            fmt::format("allocate {} bytes for argument '{}'", argument.bytes, argument.name)));
  auto buffer = std::make_unique<CudaBuffer>(argument, driver_, block);
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

Status CudaDevice::Poison(Buffer& buffer, runner::Poison poison) {
  const CudaBuffer& into = AsCuda(buffer);
  return Check(driver_.MemsetD8Async(into.data(), PoisonByte(into.argument().dtype, poison),
                                     into.bytes(), stream_),
               "poison an argument");
}

StatusOr<std::vector<std::byte>> CudaDevice::Fetch(const Buffer& buffer) {
  std::vector<std::byte> bytes(AsCuda(buffer).bytes());
  KILN_RETURN_IF_ERROR(CopyOut(AsCuda(buffer).data(), bytes));
  return bytes;
}

Status CudaDevice::ToScratch(const CompareState& state) {
  // The host's copy is on the stack: the driver stages such small ones before it returns.
  return Check(driver_.MemcpyHtoDAsync(scratch_, &state, sizeof(state), stream_),
               "copy to the GPU");
}

StatusOr<CompareState> CudaDevice::FromScratch() {
  CompareState state;
  KILN_RETURN_IF_ERROR(CopyOut(scratch_, std::as_writable_bytes(std::span(&state, 1))));
  return state;
}

StatusOr<uint64_t> CudaDevice::Checksum(const Buffer& buffer) {
  const CudaBuffer& from = AsCuda(buffer);
  const int64_t bytes = from.argument().bytes;
  // The sum goes where CompareState has `largest`.
  KILN_RETURN_IF_ERROR(ToScratch({}));
  KILN_RETURN_IF_ERROR(
      Launch(kernels_.checksum, std::max<int64_t>(2, bytes / 8), from.data(), bytes, scratch_));
  KILN_ASSIGN_OR_RETURN(const CompareState state, FromScratch());
  return state.largest;
}

StatusOr<Comparison> CudaDevice::Compare(const Buffer& got_buffer, const Buffer& want_buffer,
                                         const v1::Tolerance& asked) {
  const CudaBuffer& got = AsCuda(got_buffer);
  const CudaBuffer& want = AsCuda(want_buffer);
  const Argument& argument = got.argument();
  const v1::Tolerance tolerance = EffectiveTolerance(argument.dtype, asked);
  const int dtype = static_cast<int>(argument.dtype);
  const int64_t elements = argument.elements;
  const int64_t strides = std::max<int64_t>(2, elements);
  KILN_RETURN_IF_ERROR(ToScratch({}));
  KILN_RETURN_IF_ERROR(Launch(kernels_.largest, strides, want.data(), elements, dtype, scratch_));
  KILN_RETURN_IF_ERROR(Launch(kernels_.compare, strides, got.data(), want.data(), elements, dtype,
                              tolerance.absolute(), tolerance.relative(), scratch_));
  KILN_ASSIGN_OR_RETURN(const CompareState state, FromScratch());
  Comparison comparison;
  comparison.different = static_cast<int64_t>(state.different);
  const double largest = std::bit_cast<double>(state.largest);
  const double worst = std::bit_cast<double>(state.worst);
  comparison.max_error = largest > 0 ? worst / largest : worst;
  if (comparison.different == 0) return comparison;
  const size_t element_bytes = static_cast<size_t>(DTypeBytes(argument.dtype));
  std::byte got_element[8];
  std::byte want_element[8];
  const uint64_t offset = state.first * element_bytes;
  KILN_RETURN_IF_ERROR(CopyOut(got.data() + offset, {got_element, element_bytes}));
  KILN_RETURN_IF_ERROR(CopyOut(want.data() + offset, {want_element, element_bytes}));
  comparison.message =
      DescribeDifference(argument, static_cast<int64_t>(state.first), {got_element, element_bytes},
                         {want_element, element_bytes}, comparison.different);
  return comparison;
}

Status CudaDevice::CheckGuards(const Buffer& buffer) {
  const CudaBuffer& checked = AsCuda(buffer);
  KILN_RETURN_IF_ERROR(ToScratch({}));
  KILN_RETURN_IF_ERROR(Launch(kernels_.guards, kGuardBytes, checked.before(), checked.after(),
                              kGuardBytes, uint32_t{kCanary}, scratch_));
  KILN_ASSIGN_OR_RETURN(const CompareState state, FromScratch());
  return state.largest == 0 ? OkStatus() : DescribeStrayWrite(checked);
}

// The nearest change, and the guards as they were.
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

// A graph of options_.graph_calls calls.
Status CudaDevice::Record(const CudaProgram& program, std::span<CuPointer> pointers,
                          CuGraphExec* graph) {
  KILN_RETURN_IF_ERROR(
      Check(driver_.StreamBeginCapture(stream_, kCuCaptureThreadLocal), "record a graph"));
  Status status;
  for (int i = 0; i < options_.graph_calls && status.ok(); ++i) {
    status = program.Launch(stream_, pointers);
  }
  CuGraph recorded = nullptr;
  // Also after an error: the stream must leave the recording.
  const CuResult ended = driver_.StreamEndCapture(stream_, &recorded);
  if (status.ok()) status = Check(ended, "record a graph");
  if (status.ok()) {
    status = Check(driver_.GraphInstantiate(graph, recorded, 0), "instantiate a graph");
  }
  if (recorded != nullptr) driver_.GraphDestroy(recorded);
  return status;
}

Status CudaDevice::Queue(const CudaProgram& program, std::span<CuPointer> pointers, int64_t number,
                         CuGraphExec graph) {
  int64_t left = number;
  for (; graph != nullptr && left >= options_.graph_calls; left -= options_.graph_calls) {
    KILN_RETURN_IF_ERROR(Check(driver_.GraphLaunch(graph, stream_), "launch a graph"));
  }
  for (; left > 0; --left) KILN_RETURN_IF_ERROR(program.Launch(stream_, pointers));
  return OkStatus();
}

StatusOr<double> CudaDevice::Time(Program& any_program, std::span<Buffer* const> args,
                                  int64_t number) {
  const auto& program = static_cast<const CudaProgram&>(any_program);
  std::vector<CuPointer> pointers;
  for (const Buffer* buffer : args) pointers.push_back(AsCuda(*buffer).data());
  CuGraphExec graph = nullptr;
  if (options_.graph_calls > 0 && number >= options_.graph_calls) {
    KILN_RETURN_IF_ERROR(Record(program, pointers, &graph));
  }
  if (options_.lead_in_ns > 0) {
    KILN_RETURN_IF_ERROR(Launch(kernels_.lead_in, 1, static_cast<uint64_t>(options_.lead_in_ns)));
  }
  Status status = Check(driver_.EventRecord(start_, stream_), "record the start");
  if (status.ok()) status = Queue(program, pointers, number, graph);
  if (status.ok()) status = Check(driver_.EventRecord(end_, stream_), "record the end");
  // Also after an error: nothing of it may run on into the next call.
  const Status ended = Synchronize("run the program");
  if (graph != nullptr) driver_.GraphExecDestroy(graph);
  KILN_RETURN_IF_ERROR(status.ok() ? ended : status);
  float milliseconds = 0;
  KILN_RETURN_IF_ERROR(
      Check(driver_.EventElapsedTime(&milliseconds, start_, end_), "read the time"));
  return 1e-3 * static_cast<double>(milliseconds);
}

Status CudaDevice::Run(Program& program, std::span<Buffer* const> args) {
  return Time(program, args, 1).status();
}

// Whole graphs: a reading costs one to three microseconds besides its calls, and a call that is
// launched by itself costs the host more than a short one takes the GPU.
int64_t CudaDevice::CallsPerReading(int64_t wanted, double call_s) const {
  if (options_.graph_calls <= 0 || call_s >= kLongCall_s) return wanted;
  const int64_t graph = options_.graph_calls;
  return (wanted + graph - 1) / graph * graph;
}

void CudaDevice::FlushCaches() {
  const size_t bytes = static_cast<size_t>(std::max(2 * gpu_.l2_bytes, kMinFlushBytes));
  // Without memory for it the caches stay as they are.
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
