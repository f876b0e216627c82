#include "runner/cuda_kernels_testing.h"

#include <elf.h>

#include <bit>
#include <cstring>
#include <functional>

#include "runner/arguments.h"
#include "runner/changed_calls.h"
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
CuResult Lead(const FakeLaunch& launch) {
  FakeCuda::Get().now_ms += 1e-6 * static_cast<double>(FakeParameter<uint64_t>(launch, 0));
  return 0;
}

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

// Time of a kernel that changes or copies something.
constexpr double kShort_ms = 1e-3;

uint64_t PartnerOf(uint64_t i, uint64_t count, uint64_t mask) {
  uint64_t base = 0;
  while (true) {
    const uint64_t piece = std::bit_floor(count - base);
    if (i - base < piece) return base + ((i - base) ^ (mask & (piece - 1)));
    base += piece;
  }
}

uint64_t Selects(uint64_t places, uint64_t i) {
  if (places == kNoPlaces || places == kAllPlaces) return places & 1;
  return std::hash<uint64_t>()((places + i) * 0x9e3779b97f4a7c15) >> 63;
}

CuResult ChangeElements(const FakeLaunch& launch) {
  auto* data = Pointer<unsigned char>(FakeParameter<CuPointer>(launch, 0));
  const auto count = static_cast<uint64_t>(FakeParameter<int64_t>(launch, 1));
  const auto width = static_cast<uint64_t>(FakeParameter<int64_t>(launch, 2));
  const uint64_t mask = FakeParameter<uint64_t>(launch, 3);
  const uint64_t flip = FakeParameter<uint64_t>(launch, 4);
  const uint64_t from = FakeParameter<uint64_t>(launch, 5);
  const uint64_t to = FakeParameter<uint64_t>(launch, 6);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t partner = PartnerOf(i, count, mask);
    if (partner < i) continue;
    uint64_t here = 0, there = 0;
    std::memcpy(&here, data + i * width, width);
    std::memcpy(&there, data + partner * width, width);
    here ^= flip * (Selects(from, i) ^ Selects(to, partner));
    there ^= flip * (Selects(from, partner) ^ Selects(to, i));
    std::memcpy(data + i * width, &there, width);
    std::memcpy(data + partner * width, &here, width);
  }
  FakeCuda::Get().now_ms += kShort_ms;
  return 0;
}

// The samples are the first elements in place of any.
CuResult TakeSample(const FakeLaunch& launch) {
  const auto* data = Pointer<const unsigned char>(FakeParameter<CuPointer>(launch, 0));
  auto* into = Pointer<unsigned char>(FakeParameter<CuPointer>(launch, 4));
  const int64_t bytes = FakeParameter<int64_t>(launch, 2) * FakeParameter<int64_t>(launch, 5);
  std::memcpy(into, data, static_cast<size_t>(bytes));
  FakeCuda::Get().now_ms += kShort_ms;
  return 0;
}

}  // namespace

std::string EmptyCubin() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 190;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  header.e_shoff = sizeof(header);
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = sizeof(header) + sizeof(section);
  section.sh_size = 100;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(&section), sizeof(section));
  return bytes.append(100, 'x');
}

void ResetFakeCuda() {
  FakeCuda& fake = FakeCuda::Get();
  fake.Reset();
  fake.kernels["kiln_largest"] = {.run = Largest};
  fake.kernels["kiln_compare"] = {.run = CompareAll};
  fake.kernels["kiln_checksum"] = {.run = Checksum};
  fake.kernels["kiln_guards"] = {.run = Guards};
  fake.kernels["kiln_change"] = {.run = ChangeElements, .parameters = 7};
  fake.kernels["kiln_sample"] = {.run = TakeSample, .parameters = 6};
  fake.kernels["kiln_lead_in"] = {.run = Lead};
}

}  // namespace kiln::runner
