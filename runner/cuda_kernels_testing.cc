#include "runner/cuda_kernels_testing.h"

#include <cstring>

#include "runner/arguments.h"
#include "runner/compare.h"
#include "runner/compare_state.h"

namespace kiln::runner {

// For the names of the CUDA driver.
using namespace runtime;

namespace {

template <typename T>
T* Pointer(CuPointer pointer) {
  return reinterpret_cast<T*>(pointer);
}

// The runner's own kernels, in a simple way.
CuResult Largest(const FakeLaunch&) { return 0; }
CuResult Lead(const FakeLaunch&) { return 0; }

CuResult CompareAll(const FakeLaunch& launch) {
  Argument argument;
  argument.name = "x";
  argument.elements = FakeParameter<int64_t>(launch, 2);
  argument.shape = {argument.elements};
  argument.dtype = static_cast<DType>(FakeParameter<int>(launch, 3));
  const size_t element_bytes = static_cast<size_t>(DTypeBytes(argument.dtype));
  const size_t bytes = static_cast<size_t>(argument.elements) * element_bytes;
  const auto* got = Pointer<const std::byte>(FakeParameter<CuPointer>(launch, 0));
  const auto* want = Pointer<const std::byte>(FakeParameter<CuPointer>(launch, 1));
  v1::Tolerance tolerance;
  tolerance.set_absolute(FakeParameter<double>(launch, 5));
  tolerance.set_relative(FakeParameter<double>(launch, 6));
  auto* state = Pointer<CompareState>(FakeParameter<CuPointer>(launch, 7));
  const Comparison all = Compare(argument, {got, bytes}, {want, bytes}, tolerance);
  state->different = static_cast<uint64_t>(all.different);
  // max_error is worst / largest.
  const double one = 1;
  std::memcpy(&state->largest, &one, sizeof(one));
  std::memcpy(&state->worst, &all.max_error, sizeof(one));
  for (size_t at = 0; at < bytes && all.different > 0; at += element_bytes) {
    if (std::memcmp(got + at, want + at, element_bytes) == 0) continue;
    state->first = at / element_bytes;
    break;
  }
  return 0;
}

CuResult Checksum(const FakeLaunch& launch) {
  const auto* data = Pointer<const unsigned char>(FakeParameter<CuPointer>(launch, 0));
  uint64_t& sum = *Pointer<uint64_t>(FakeParameter<CuPointer>(launch, 2));
  for (int64_t i = 0; i < FakeParameter<int64_t>(launch, 1); ++i) sum = sum * 31 + data[i];
  return 0;
}

CuResult Guards(const FakeLaunch& launch) {
  const auto* before = Pointer<const unsigned char>(FakeParameter<CuPointer>(launch, 0));
  const auto* after = Pointer<const unsigned char>(FakeParameter<CuPointer>(launch, 1));
  const uint32_t canary = FakeParameter<uint32_t>(launch, 3);
  uint64_t& stray = *Pointer<uint64_t>(FakeParameter<CuPointer>(launch, 4));
  for (int64_t i = 0; i < FakeParameter<int64_t>(launch, 2); ++i) {
    stray += (before[i] != canary) + (after[i] != canary);
  }
  return 0;
}

}  // namespace

void ResetFakeCuda() {
  FakeCuda& fake = FakeCuda::Get();
  fake.Reset();
  fake.kernels["kiln_largest"] = {.run = Largest};
  fake.kernels["kiln_compare"] = {.run = CompareAll};
  fake.kernels["kiln_checksum"] = {.run = Checksum};
  fake.kernels["kiln_guards"] = {.run = Guards};
  fake.kernels["kiln_lead_in"] = {.run = Lead};
}

}  // namespace kiln::runner
