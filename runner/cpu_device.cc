#include "runner/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "base/digest.h"
#include "proto/cpu_abi.h"
#include "runner/cpu_description.h"
#include "runner/free_memory.h"
#include "runner/guarded_memory.h"
#include "runner/parallel_runtime.h"
#include "runner/shared_object.h"

namespace kiln::runner {
namespace {

// Past the last-level cache and each core's own; bounded where a machine has hundreds of MiB of it.
constexpr int64_t kMinFlushBytes = 32 << 20;
constexpr int64_t kMaxFlushBytes = 1 << 30;

class CpuProgram : public Program {
 public:
  CpuProgram(std::unique_ptr<SharedObject> object, KilnEntry entry)
      : entry(entry), object_(std::move(object)) {}
  const KilnEntry entry;

 private:
  const std::unique_ptr<SharedObject> object_;
};

class CpuBuffer : public Buffer {
 public:
  CpuBuffer(Argument argument, std::unique_ptr<GuardedMemory> memory)
      : Buffer(std::move(argument)), memory(std::move(memory)) {}
  const std::unique_ptr<GuardedMemory> memory;
  std::span<std::byte> bytes() const { return memory->bytes(); }
};

CpuBuffer& AsCpu(Buffer& buffer) { return static_cast<CpuBuffer&>(buffer); }
const CpuBuffer& AsCpu(const Buffer& buffer) { return static_cast<const CpuBuffer&>(buffer); }

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options)
      : name_(CpuModelName()),
        runtime_({.threads = options.threads > 0 ? options.threads : DefaultCpuThreads(),
                  .pin = options.pin}) {}

  std::string Name() const override { return name_; }
  int64_t FreeMemoryBytes() const override;
  bool is_host() const override { return true; }

  StatusOr<std::unique_ptr<Program>> Load(const v1::Artifact& artifact) override;

  StatusOr<std::unique_ptr<Buffer>> Allocate(const Argument& argument) override;
  Status Fill(Buffer& buffer, std::span<const std::byte> bytes) override;
  Status Poison(Buffer& buffer, runner::Poison poison) override;
  StatusOr<std::vector<std::byte>> Fetch(const Buffer& buffer) override;
  StatusOr<uint64_t> Checksum(const Buffer& buffer) override;
  StatusOr<Comparison> Compare(const Buffer& got, const Buffer& want,
                               const v1::Tolerance& tolerance) override;
  Status CheckGuards(const Buffer& buffer) override { return AsCpu(buffer).memory->CheckGuards(); }

  Status Run(Program& program, std::span<Buffer* const> args) override;
  StatusOr<double> Time(Program& program, std::span<Buffer* const> args, int64_t number) override;
  void FlushCaches() override;

 private:
  const std::string name_;
  ParallelRuntime runtime_;
  std::vector<std::byte> flush_;
};

int64_t CpuDevice::FreeMemoryBytes() const { return runner::FreeMemoryBytes(); }

StatusOr<std::unique_ptr<Program>> CpuDevice::Load(const v1::Artifact& artifact) {
  if (artifact.kind() != v1::Artifact::SHARED_OBJECT) {
    return InvalidArgument("an artifact of kind {} is not for a CPU, expected SHARED_OBJECT",
                           v1::Artifact::Kind_Name(artifact.kind()));
  }
  KILN_ASSIGN_OR_RETURN(auto object, SharedObject::Load(artifact.binary()));
  KILN_ASSIGN_OR_RETURN(void* entry, object->Find(KILN_CPU_ENTRY));
  return std::make_unique<CpuProgram>(std::move(object), reinterpret_cast<KilnEntry>(entry));
}

StatusOr<std::unique_ptr<Buffer>> CpuDevice::Allocate(const Argument& argument) {
  KILN_ASSIGN_OR_RETURN(auto memory,
                        GuardedMemory::Allocate(argument.name, static_cast<size_t>(argument.bytes),
                                                static_cast<size_t>(argument.alignment_bytes)));
  return std::make_unique<CpuBuffer>(argument, std::move(memory));
}

Status CpuDevice::Fill(Buffer& buffer, std::span<const std::byte> bytes) {
  const auto into = AsCpu(buffer).bytes();
  KILN_CHECK(into.size() == bytes.size(), "{} bytes into {}", bytes.size(), into.size());
  std::memcpy(into.data(), bytes.data(), bytes.size());
  return OkStatus();
}

Status CpuDevice::Poison(Buffer& buffer, runner::Poison poison) {
  FillPoison(AsCpu(buffer).bytes(), buffer.argument().dtype, poison);
  return OkStatus();
}

StatusOr<std::vector<std::byte>> CpuDevice::Fetch(const Buffer& buffer) {
  const auto bytes = AsCpu(buffer).bytes();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

StatusOr<uint64_t> CpuDevice::Checksum(const Buffer& buffer) {
  const auto bytes = AsCpu(buffer).bytes();
  return Xxh3({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

StatusOr<Comparison> CpuDevice::Compare(const Buffer& got, const Buffer& want,
                                        const v1::Tolerance& tolerance) {
  return runner::Compare(got.argument(), AsCpu(got).bytes(), AsCpu(want).bytes(), tolerance);
}

StatusOr<double> CpuDevice::Time(Program& program, std::span<Buffer* const> args, int64_t number) {
  const KilnEntry entry = static_cast<CpuProgram&>(program).entry;
  std::vector<void*> pointers;
  for (Buffer* buffer : args) pointers.push_back(AsCpu(*buffer).bytes().data());
  int32_t code = 0;
  int64_t elapsed_ns = 0;
  runtime_.Call([&] {
    Clock& clock = Clock::Real();
    const int64_t start_ns = clock.MonotonicNanos();
    for (int64_t i = 0; i < number; ++i) code |= entry(runtime_.context(), pointers.data());
    elapsed_ns = clock.MonotonicNanos() - start_ns;
  });
  if (code != 0) return Internal("the program returned {}, expected 0", code);
  return 1e-9 * static_cast<double>(elapsed_ns);
}

Status CpuDevice::Run(Program& program, std::span<Buffer* const> args) {
  return Time(program, args, 1).status();
}

void CpuDevice::FlushCaches() {
  if (flush_.empty()) {
    const int64_t bytes = std::clamp(2 * LastLevelCacheBytes(), kMinFlushBytes, kMaxFlushBytes);
    flush_.resize(static_cast<size_t>(bytes));
  }
  // All threads write, so that every core's own cache is filled with something else, too.
  runtime_.Call([&] {
    runtime_.ParallelFor(
        [](void* closure, int64_t begin, int64_t end) {
          auto& bytes = *static_cast<std::vector<std::byte>*>(closure);
          for (int64_t line = begin; line < end; ++line) {
            std::byte& byte = bytes[static_cast<size_t>(line * 64)];
            byte = std::byte(static_cast<int>(byte) + 1);
          }
        },
        &flush_, static_cast<int64_t>(flush_.size() / 64));
  });
}

}  // namespace

int DefaultCpuThreads() { return std::max<int>(1, static_cast<int>(AllowedCores().size())); }

std::unique_ptr<Device> MakeCpuDevice(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace kiln::runner
