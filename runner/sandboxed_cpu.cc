#include "runner/sandboxed_cpu.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/errno_status.h"
#include "base/hash/digest.h"
#include "runner/cpu_canary.h"
#include "runner/cpu_description.h"
#include "runner/free_memory.h"
#include "runner/guarded_memory.h"

namespace kiln::runner {
namespace {

// Memory that a process and its forks share, to flush the caches.
class SharedMemory {
 public:
  static StatusOr<SharedMemory> Make(size_t bytes) {
    void* const mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping != MAP_FAILED) return SharedMemory({static_cast<std::byte*>(mapping), bytes});
    return ResourceExhausted("no {} bytes of memory to flush caches: {}", bytes, ErrnoText(errno));
  }
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory() {
    if (bytes_.data() != nullptr) munmap(bytes_.data(), bytes_.size());
  }

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit SharedMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

// Memory of an argument. The program's process gets a copy of an input, it shares an output, and a
// workspace exists only there.
class SandboxBuffer : public Buffer {
 public:
  using Buffer::Buffer;
  std::unique_ptr<GuardedMemory> memory;
  // Copy of what the loaded program had in its output when it was asked last.
  PrivateBytes taken;

  bool is_output() const { return argument().role == v1::ArgSpec::OUTPUT; }
};
SandboxBuffer& AsSandboxed(Buffer& buffer) { return static_cast<SandboxBuffer&>(buffer); }
const SandboxBuffer& AsSandboxed(const Buffer& buffer) {
  return static_cast<const SandboxBuffer&>(buffer);
}

class SandboxedProgram : public Program {
 public:
  SandboxedProgram(std::unique_ptr<SandboxProcess> process, std::span<Buffer* const> args,
                   SandboxedProgram** current)
      : process(std::move(process)), args(args.begin(), args.end()), current_(current) {
    *current_ = this;
  }
  ~SandboxedProgram() override {
    if (*current_ == this) *current_ = nullptr;
  }

  const std::unique_ptr<SandboxProcess> process;
  const std::vector<Buffer*> args;

  // Returns the place of a buffer among the arguments, if it is one.
  std::optional<size_t> IndexOf(const Buffer& buffer) const {
    const auto found = std::ranges::find(args, &buffer);
    if (found == args.end()) return std::nullopt;
    return static_cast<size_t>(found - args.begin());
  }

 private:
  SandboxedProgram** const current_;
};

class SandboxedCpu : public Device {
 public:
  explicit SandboxedCpu(const SandboxProcess::Options& options)
      : options_(options), name_(CpuModelName()) {}

  std::string Name() const override { return name_; }
  int64_t FreeMemoryBytes() const override { return runner::FreeMemoryBytes(); }
  bool is_host() const override { return true; }

  StatusOr<std::unique_ptr<Program>> Load(const v1::Artifact& artifact) override {
    return LoadFor(artifact, {});
  }
  StatusOr<std::unique_ptr<Program>> LoadFor(const v1::Artifact& artifact,
                                             std::span<Buffer* const> args) override;

  StatusOr<std::unique_ptr<Buffer>> Allocate(const Argument& argument) override;
  Status Fill(Buffer& buffer, std::span<const std::byte> bytes) override;
  Status Substitute(Buffer& input, Buffer& other) override { return Show(input, other); }
  Status Restore(Buffer& input, Buffer&) override { return Show(input, input); }
  Status Poison(Buffer& buffer, runner::Poison poison) override;
  Status PoisonElement(Buffer& output, runner::Poison poison, int64_t element) override;
  Status Rewrite() override;
  StatusOr<PrivateBytes> Fetch(const Buffer& buffer) override;
  StatusOr<uint64_t> Checksum(const Buffer& buffer) override;
  StatusOr<Comparison> Compare(const Buffer& got, const Buffer& want,
                               const v1::Tolerance& tolerance) override;
  Status CheckGuards(const Buffer& buffer) override;

  Status Run(Program& program, std::span<Buffer* const> args) override {
    return RunChecked(program, args).status();
  }
  StatusOr<CheckedTime> RunChecked(Program& program, std::span<Buffer* const> args) override;
  StatusOr<double> Time(Program& program, std::span<Buffer* const> args, int64_t number) override;
  void FlushCaches() override;
  void ExpectFlushes() override;
  StatusOr<double> TimeCanary() override { return TimeCpuCanary(options_.cpu); }

 private:
  // Copies `content` to where the program's process has `input`.
  Status Show(Buffer& input, const Buffer& content);
  // Returns the program's process, which is about to run.
  SandboxProcess& ProcessOf(Program& program, std::span<Buffer* const> args);
  // Copies the outputs of the loaded program.
  void TakeOutputs();
  // Returns the content of a buffer, without the changes that the loaded program made to inputs.
  StatusOr<std::span<const std::byte>> ContentOf(const Buffer& buffer);
  // Returns the facts that the program's process publishes about its arguments; null: the buffer is
  // no argument of the program.
  StatusOr<const SandboxProcess::Published*> AskAbout(const Buffer& buffer);

  SandboxProcess::Options options_;
  const std::string name_;
  // Set once flushes are expected.
  SharedMemory flush_;
  SandboxedProgram* current_ = nullptr;
  // Set since the last run.
  std::optional<SandboxProcess::Published> published_;
};

StatusOr<std::unique_ptr<Program>> SandboxedCpu::LoadFor(const v1::Artifact& artifact,
                                                         std::span<Buffer* const> args) {
  KILN_CHECK(current_ == nullptr, "a program of this device is still loaded");
  published_.reset();
  std::vector<SandboxArgument> arguments;
  for (Buffer* arg : args) {
    SandboxBuffer& buffer = AsSandboxed(*arg);
    arguments.push_back({.argument = buffer.argument(), .memory = buffer.memory.get()});
  }
  KILN_ASSIGN_OR_RETURN(auto process,
                        SandboxProcess::Start(options_, artifact, std::move(arguments)));
  return std::make_unique<SandboxedProgram>(std::move(process), args, &current_);
}

StatusOr<std::unique_ptr<Buffer>> SandboxedCpu::Allocate(const Argument& argument) {
  auto buffer = std::make_unique<SandboxBuffer>(argument);
  if (argument.role == v1::ArgSpec::WORKSPACE) return buffer;
  using Sharing = GuardedMemory::Sharing;
  KILN_ASSIGN_OR_RETURN(
      buffer->memory,
      GuardedMemory::Allocate(argument.name, static_cast<size_t>(argument.bytes),
                              static_cast<size_t>(argument.alignment_bytes),
                              buffer->is_output() ? Sharing::kShared : Sharing::kCopied));
  buffer->memory->InheritByFork(false);
  return buffer;
}

Status SandboxedCpu::Fill(Buffer& buffer, std::span<const std::byte> bytes) {
  const auto into = AsSandboxed(buffer).memory->bytes();
  KILN_CHECK(into.size() == bytes.size(), "{} bytes into {}", bytes.size(), into.size());
  std::memcpy(into.data(), bytes.data(), bytes.size());
  return OkStatus();
}

Status SandboxedCpu::Show(Buffer& input, const Buffer& content) {
  published_.reset();
  // There is no process that sees an input.
  if (current_ == nullptr) return OkStatus();
  const auto index = current_->IndexOf(input);
  KILN_CHECK(index.has_value(), "no argument of the program that is loaded");
  return current_->process->Refill(*index, AsSandboxed(content).memory->bytes());
}

Status SandboxedCpu::Poison(Buffer& buffer, runner::Poison poison) {
  published_.reset();
  if (current_ != nullptr) {
    if (const auto index = current_->IndexOf(buffer)) {
      return current_->process->Poison(*index, poison);
    }
  }
  if (AsSandboxed(buffer).memory == nullptr) return OkStatus();
  FillPoison(AsSandboxed(buffer).memory->bytes(), buffer.argument().dtype, poison);
  return OkStatus();
}

// The program shares its outputs with this process.
Status SandboxedCpu::PoisonElement(Buffer& output, runner::Poison poison, int64_t element) {
  published_.reset();
  PoisonOne(AsSandboxed(output).memory->bytes(), output.argument().dtype, poison, element);
  return OkStatus();
}

Status SandboxedCpu::Rewrite() {
  published_.reset();
  return current_ == nullptr ? OkStatus() : current_->process->Rewrite();
}

StatusOr<const SandboxProcess::Published*> SandboxedCpu::AskAbout(const Buffer& buffer) {
  if (current_ == nullptr || !current_->IndexOf(buffer)) return nullptr;
  if (!published_.has_value()) {
    KILN_ASSIGN_OR_RETURN(published_, current_->process->Publish([this] { TakeOutputs(); }));
  }
  return &*published_;
}

void SandboxedCpu::TakeOutputs() {
  for (Buffer* arg : current_->args) {
    SandboxBuffer& buffer = AsSandboxed(*arg);
    if (!buffer.is_output()) continue;
    const std::span<const std::byte> bytes = buffer.memory->bytes();
    buffer.taken.resize(bytes.size());
    std::memcpy(buffer.taken.data(), bytes.data(), bytes.size());
  }
}

StatusOr<std::span<const std::byte>> SandboxedCpu::ContentOf(const Buffer& buffer) {
  KILN_ASSIGN_OR_RETURN(const SandboxProcess::Published* published, AskAbout(buffer));
  const SandboxBuffer& sandboxed = AsSandboxed(buffer);
  if (published != nullptr && sandboxed.is_output()) {
    return std::span<const std::byte>(sandboxed.taken);
  }
  return std::span<const std::byte>(sandboxed.memory->bytes());
}

StatusOr<PrivateBytes> SandboxedCpu::Fetch(const Buffer& buffer) {
  KILN_ASSIGN_OR_RETURN(const auto bytes, ContentOf(buffer));
  return PrivateBytes(bytes.begin(), bytes.end());
}

// Returns the checksum of a buffer. For an input of the loaded program, the content is the one in
// the program's process, which the program may have changed.
StatusOr<uint64_t> SandboxedCpu::Checksum(const Buffer& buffer) {
  KILN_ASSIGN_OR_RETURN(const SandboxProcess::Published* published, AskAbout(buffer));
  if (published != nullptr && !AsSandboxed(buffer).is_output()) {
    return published->sums[current_->IndexOf(buffer).value()];
  }
  KILN_ASSIGN_OR_RETURN(const auto bytes, ContentOf(buffer));
  return Xxh3({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

StatusOr<Comparison> SandboxedCpu::Compare(const Buffer& got, const Buffer& want,
                                           const v1::Tolerance& tolerance) {
  KILN_ASSIGN_OR_RETURN(const auto bytes, ContentOf(got));
  return runner::Compare(got.argument(), bytes, AsSandboxed(want).memory->bytes(), tolerance);
}

Status SandboxedCpu::CheckGuards(const Buffer& buffer) {
  KILN_ASSIGN_OR_RETURN(const SandboxProcess::Published* published, AskAbout(buffer));
  if (published == nullptr) return OkStatus();
  return published->guards[current_->IndexOf(buffer).value()];
}

SandboxProcess& SandboxedCpu::ProcessOf(Program& program, std::span<Buffer* const> args) {
  SandboxedProgram& sandboxed = static_cast<SandboxedProgram&>(program);
  KILN_CHECK(std::ranges::equal(args, sandboxed.args),
             "the program was loaded for other arguments");
  published_.reset();
  return *sandboxed.process;
}

StatusOr<CheckedTime> SandboxedCpu::RunChecked(Program& program, std::span<Buffer* const> args) {
  return ProcessOf(program, args).Run();
}

StatusOr<double> SandboxedCpu::Time(Program& program, std::span<Buffer* const> args,
                                    int64_t number) {
  return ProcessOf(program, args).Time(number);
}

void SandboxedCpu::FlushCaches() {
  // If the process has ended, the next call says so.
  if (current_ != nullptr) (void)current_->process->FlushCaches();
}

// Makes the memory once for all processes, because new memory is slow at first.
void SandboxedCpu::ExpectFlushes() {
  if (!flush_.bytes().empty()) return;
  auto memory = SharedMemory::Make(FlushBytes());
  // Each process gets its own memory then.
  if (!memory.ok()) return;
  flush_ = *std::move(memory);
  std::memset(flush_.bytes().data(), 1, flush_.bytes().size());
  options_.flush = flush_.bytes();
}

}  // namespace

std::unique_ptr<Device> MakeSandboxedCpu(const SandboxProcess::Options& options) {
  return std::make_unique<SandboxedCpu>(options);
}

}  // namespace kiln::runner
