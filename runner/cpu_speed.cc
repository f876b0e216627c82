#include "runner/cpu_speed.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace kiln::runner {
namespace {

constexpr int kTries = 5;

// Returns the seconds of the fastest of some calls.
template <typename Call>
double Fastest(const Call& call) {
  double best_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const double start_s = Clock::Real().MonotonicSeconds();
    call();
    best_s = std::min(best_s, Clock::Real().MonotonicSeconds() - start_s);
  }
  return best_s;
}

int32_t Rounded(double value, int32_t unit) {
  return static_cast<int32_t>(value / unit + 0.5) * unit;
}

#if defined(__x86_64__)

constexpr int64_t kChainRounds = 100'000, kChainLength = 10;
constexpr double kMultiplyCycles = 3;

void MultiplyInAChain() {
  uint64_t value = 3;
  for (int64_t i = 0; i < kChainRounds; ++i) {
    asm volatile(
        "imulq %0, %0\n\timulq %0, %0\n\timulq %0, %0\n\timulq %0, %0\n\timulq %0, %0\n\t"
        "imulq %0, %0\n\timulq %0, %0\n\timulq %0, %0\n\timulq %0, %0\n\timulq %0, %0"
        : "+r"(value)
        :
        : "cc");
  }
}

constexpr int64_t kFmaRounds = 100'000, kFmaChains = 12;

// The number of chains hides the latency of one chain on two ports, and fits in registers.
#define KILN_MULTIPLY_ADDS(function, features, bytes)                              \
  __attribute__((target(features), noinline)) float function() {                   \
    typedef float Vector __attribute__((vector_size(bytes)));                      \
    Vector sums[kFmaChains] = {};                                                  \
    /* Otherwise the compiler sees that all chains are equal. */                   \
    for (Vector & sum : sums) asm volatile("" : "+x"(sum));                        \
    const Vector scale = Vector{} + 0.5f, term = Vector{} + 1.0f;                  \
    for (int64_t round = 0; round < kFmaRounds; ++round) {                         \
      _Pragma("GCC unroll 12") for (Vector & sum : sums) sum = sum * scale + term; \
    }                                                                              \
    Vector all{};                                                                  \
    for (const Vector& sum : sums) all += sum;                                     \
    return all[0];                                                                 \
  }
KILN_MULTIPLY_ADDS(MultiplyAdd512, "avx512f", 64)
KILN_MULTIPLY_ADDS(MultiplyAdd256, "avx2,fma", 32)
KILN_MULTIPLY_ADDS(MultiplyAdd128, "sse2", 16)
#undef KILN_MULTIPLY_ADDS

#endif

}  // namespace

int32_t MeasureClockMhz() {
#if defined(__x86_64__)
  return Rounded(1e-6 * kMultiplyCycles * kChainLength * kChainRounds / Fastest(MultiplyInAChain),
                 50);
#else
  return 0;
#endif
}

int32_t MeasureGflopsPerCore() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  float (*run)() = MultiplyAdd128;
  int64_t lanes = 4;
  if (__builtin_cpu_supports("avx512f")) {
    run = MultiplyAdd512;
    lanes = 16;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    run = MultiplyAdd256;
    lanes = 8;
  }
  volatile float kept = 0;
  const double seconds = Fastest([&] { kept = kept + run(); });
  return Rounded(2e-9 * static_cast<double>(lanes * kFmaRounds * kFmaChains) / seconds, 5);
#else
  return 0;
#endif
}

}  // namespace kiln::runner
