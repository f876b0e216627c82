#include "runner/cpu_canary.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "runner/canary_reading.h"

namespace kiln::runner {
namespace {

// Each core's own caches have 2 MiB at most. Machines with very many cores get less for each.
constexpr int64_t kBytesPerCore = 4 << 20, kMostBytes = 256 << 20;
// About 0.15 ms at 3 GHz.
constexpr int64_t kChainLength = 100'000;
// A span of about 10 ms: other programs on the core do not leave it alone for so long.
constexpr int64_t kCallsPerSpan = 32;

struct Work {
  std::byte* memory = nullptr;
  int64_t bytes_per_slice = 0;
  int64_t slices = 0;
  // Keeps the compiler from leaving the work out.
  std::atomic<uint64_t> sink{0};
};

uint64_t MultiplyInAChain(uint64_t value) {
  for (int64_t i = 0; i < kChainLength; ++i) value = value * 6364136223846793005u + 1;
  return value;
}

uint64_t SumOf(const std::byte* memory, int64_t bytes) {
  uint64_t sum = 0;
  for (int64_t at = 0; at < bytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, memory + at, sizeof(word));
    sum += word;
  }
  return sum;
}

int32_t FillEntry(KilnCpuContext* context, void* const* args) {
  context->parallel_for(
      context,
      [](void* closure, int64_t begin, int64_t end) {
        const Work& work = *static_cast<Work*>(closure);
        std::memset(work.memory + begin * work.bytes_per_slice, 1,
                    static_cast<size_t>((end - begin) * work.bytes_per_slice));
      },
      args[0], static_cast<Work*>(args[0])->slices);
  return 0;
}

int32_t CanaryEntry(KilnCpuContext* context, void* const* args) {
  context->parallel_for(
      context,
      [](void* closure, int64_t begin, int64_t end) {
        Work& work = *static_cast<Work*>(closure);
        uint64_t value = 0;
        for (int64_t slice = begin; slice < end; ++slice) {
          value += MultiplyInAChain(static_cast<uint64_t>(slice));
          value += SumOf(work.memory + slice * work.bytes_per_slice, work.bytes_per_slice);
        }
        work.sink += value;
      },
      args[0], static_cast<Work*>(args[0])->slices);
  return 0;
}

}  // namespace

StatusOr<double> TimeCpuCanary(const CpuDeviceOptions& options) {
  CpuCalls calls(options);
  Work work;
  work.slices = options.threads > 0 ? options.threads : DefaultCpuThreads();
  work.bytes_per_slice = std::min(kBytesPerCore, kMostBytes / work.slices / 64 * 64);
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(
      static_cast<size_t>(work.slices * work.bytes_per_slice));
  work.memory = memory.get();
  void* const args[] = {&work};
  KILN_RETURN_IF_ERROR(calls.Time(FillEntry, args, 1).status());
  KILN_ASSIGN_OR_RETURN(const double span_s, SettledSeconds([&] {
                          return calls.Time(CanaryEntry, args, kCallsPerSpan);
                        }));
  return span_s / static_cast<double>(kCallsPerSpan);
}

}  // namespace kiln::runner
