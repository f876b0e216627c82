#include "runner/cpu_calls.h"

#include <algorithm>

#include "base/clock.h"
#include "runner/cpu_description.h"
#include "runner/fault_report.h"

namespace kiln::runner {
namespace {

// The bytes exceed the last-level cache and each core's own caches. They are bounded, because some
// machines have hundreds of MiB of last-level cache.
constexpr int64_t kMinFlushBytes = 32 << 20;
constexpr int64_t kMaxFlushBytes = 1 << 30;

void WithSignalStack(const std::function<void()>& thread) {
  const SignalStack signal_stack;
  thread();
}

}  // namespace

int DefaultCpuThreads() {
  return std::max<int>(1, static_cast<int>(runtime::AllowedCores().size()));
}

StatusOr<CpuEntry> LoadCpuEntry(const v1::Artifact& artifact) {
  if (artifact.device() != "cpu") {
    return InvalidArgument("the artifact is for device '{}', expected one for cpu",
                           artifact.device());
  }
  CpuEntry loaded;
  KILN_ASSIGN_OR_RETURN(loaded.object, runtime::SharedObject::Load(artifact.binary()));
  KILN_ASSIGN_OR_RETURN(void* entry, loaded.object->Find(KILN_CPU_ENTRY));
  loaded.entry = reinterpret_cast<KilnEntry>(entry);
  return loaded;
}

size_t FlushBytes() {
  return static_cast<size_t>(std::clamp(2 * LastLevelCacheBytes(), kMinFlushBytes, kMaxFlushBytes));
}

CpuCalls::CpuCalls(const CpuDeviceOptions& options, std::span<std::byte> flush)
    : runtime_({.threads = options.threads > 0 ? options.threads : DefaultCpuThreads(),
                .pin = options.pin,
                .around_thread = WithSignalStack}),
      flush_(flush) {}

void CpuCalls::WakeThreads() {
  runtime_.ParallelFor([](void*, int64_t, int64_t) {}, nullptr, runtime_.threads());
}

void CpuCalls::WaitForThreads() {
  runtime_.Call([&] { WakeThreads(); });
}

StatusOr<double> CpuCalls::Time(KilnEntry entry, std::span<void* const> arguments, int64_t number) {
  int32_t code = 0;
  int64_t elapsed_ns = 0;
  runtime_.Call([&] {
    Clock& clock = Clock::Real();
    // Threads that slept since the last call are woken first, because they are awake between two
    // calls of a batch.
    WakeThreads();
    const int64_t start_ns = clock.MonotonicNanos();
    for (int64_t i = 0; i < number; ++i) code |= entry(runtime_.context(), arguments.data());
    elapsed_ns = clock.MonotonicNanos() - start_ns;
  });
  if (code != 0) return Internal("the program returned {}, expected 0", code);
  return 1e-9 * static_cast<double>(elapsed_ns);
}

void CpuCalls::FlushCaches() {
  if (flush_.empty()) {
    own_flush_.resize(FlushBytes());
    flush_ = own_flush_;
  }
  // All threads write, so that the own caches of every core are filled with other data, too.
  runtime_.Call([&] {
    runtime_.ParallelFor(
        [](void* closure, int64_t begin, int64_t end) {
          auto& bytes = *static_cast<std::span<std::byte>*>(closure);
          for (int64_t line = begin; line < end; ++line) {
            std::byte& byte = bytes[static_cast<size_t>(line * 64)];
            byte = std::byte(static_cast<int>(byte) + 1);
          }
        },
        &flush_, static_cast<int64_t>(flush_.size() / 64));
  });
}

}  // namespace kiln::runner
