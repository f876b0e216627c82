#include "runner/cpu_device.h"

#include <algorithm>
#include <cstring>

#include "base/hash/digest.h"
#include "runner/cpu_canary.h"
#include "runner/cpu_description.h"
#include "runner/free_memory.h"
#include "runner/guarded_memory.h"

namespace kiln::runner {
namespace {

class CpuProgram : public Program {
 public:
  explicit CpuProgram(CpuEntry loaded) : loaded(std::move(loaded)) {}
  const CpuEntry loaded;
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
      : options_(options), name_(CpuModelName()), calls_(options) {}

  std::string Name() const override { return name_; }
  int64_t FreeMemoryBytes() const override { return runner::FreeMemoryBytes(); }
  bool is_host() const override { return true; }

  StatusOr<std::unique_ptr<Program>> Load(const v1::Artifact& artifact) override;

  StatusOr<std::unique_ptr<Buffer>> Allocate(const Argument& argument) override;
  Status Fill(Buffer& buffer, std::span<const std::byte> bytes) override;
  Status Substitute(Buffer& input, Buffer& other) override;
  Status Restore(Buffer& input, Buffer& other) override { return Substitute(input, other); }
  Status Poison(Buffer& buffer, runner::Poison poison) override;
  Status PoisonElement(Buffer& output, runner::Poison poison, int64_t element) override {
    PoisonOne(AsCpu(output).bytes(), output.argument().dtype, poison, element);
    return OkStatus();
  }
  StatusOr<PrivateBytes> Fetch(const Buffer& buffer) override;
  StatusOr<uint64_t> Checksum(const Buffer& buffer) override;
  StatusOr<Comparison> Compare(const Buffer& got, const Buffer& want,
                               const v1::Tolerance& tolerance) override;
  Status CheckGuards(const Buffer& buffer) override { return AsCpu(buffer).memory->CheckGuards(); }

  Status Run(Program& program, std::span<Buffer* const> args) override;
  StatusOr<double> Time(Program& program, std::span<Buffer* const> args, int64_t number) override;
  void FlushCaches() override { calls_.FlushCaches(); }
  StatusOr<double> TimeCanary() override { return TimeCpuCanary(options_); }

 private:
  const CpuDeviceOptions options_;
  const std::string name_;
  CpuCalls calls_;
};

StatusOr<std::unique_ptr<Program>> CpuDevice::Load(const v1::Artifact& artifact) {
  KILN_ASSIGN_OR_RETURN(CpuEntry loaded, LoadCpuEntry(artifact));
  return std::make_unique<CpuProgram>(std::move(loaded));
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

Status CpuDevice::Substitute(Buffer& input, Buffer& other) {
  std::ranges::swap_ranges(AsCpu(input).bytes(), AsCpu(other).bytes());
  return OkStatus();
}

Status CpuDevice::Poison(Buffer& buffer, runner::Poison poison) {
  FillPoison(AsCpu(buffer).bytes(), buffer.argument().dtype, poison);
  return OkStatus();
}

StatusOr<PrivateBytes> CpuDevice::Fetch(const Buffer& buffer) {
  const auto bytes = AsCpu(buffer).bytes();
  return PrivateBytes(bytes.begin(), bytes.end());
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
  std::vector<void*> pointers;
  for (Buffer* buffer : args) pointers.push_back(AsCpu(*buffer).bytes().data());
  return calls_.Time(static_cast<CpuProgram&>(program).loaded.entry, pointers, number);
}

Status CpuDevice::Run(Program& program, std::span<Buffer* const> args) {
  return Time(program, args, 1).status();
}

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace kiln::runner
