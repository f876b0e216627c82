// The runner's own kernels: checks and changes of a trial's buffers, and a lead-in for timings.
//
// They are shipped as PTX (cuda_kernels.ptx, made by generate_ptx.sh), which the driver compiles
// when a child starts, so neither the build nor the GPU machine needs a toolkit. They include no
// headers of a toolkit, so that the PTX depends on the compiler alone. All kernels are grid-stride
// loops: any launch size is right. cuda_device.cc knows their parameters; cuda_kernels_testing.cc
// does the same on the host.
#include "runner/compare_state.h"
#include "runtime/dtype_values.h"

using kiln::runner::CompareState;
using kiln::runtime::DType;

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u64 kExponent = 0x7ff0000000000000ull;
constexpr u64 kMagnitude = 0x7fffffffffffffffull;

__device__ i64 First() { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ i64 Step() { return static_cast<i64>(gridDim.x) * blockDim.x; }

__device__ double FromHalf(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// Conversions of base/numbers/float8.h, by way of a half: its exponent has 5 bits, as many as that
// of e5m2 and one more than that of e4m3.
__device__ double FromE5M2(u8 bits) { return FromHalf(static_cast<unsigned short>(bits << 8)); }
__device__ double FromE4M3(u8 bits) {
  if ((bits & 0x7f) == 0x7f) return __longlong_as_double(0x7ff8000000000000ll);
  return 256 * FromHalf(static_cast<unsigned short>((bits & 0x80) << 8 | (bits & 0x7f) << 7));
}

__device__ bool IsExact(DType dtype) { return dtype >= DType::kInt64; }

// Returns the element. The bits of a uint64 are those of the result.
__device__ i64 LoadInteger(const void* data, i64 i, DType dtype) {
  switch (dtype) {
    case DType::kInt64:
    case DType::kUInt64:
      return static_cast<const i64*>(data)[i];
    case DType::kInt32:
      return static_cast<const int*>(data)[i];
    case DType::kInt16:
      return static_cast<const short*>(data)[i];
    case DType::kUInt16:
      return static_cast<const unsigned short*>(data)[i];
    case DType::kUInt32:
      return static_cast<const u32*>(data)[i];
    case DType::kInt8:
      return static_cast<const signed char*>(data)[i];
    default:
      return static_cast<const u8*>(data)[i];
  }
}

__device__ double LoadDouble(const void* data, i64 i, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return static_cast<const double*>(data)[i];
    case DType::kFloat32:
      return static_cast<const float*>(data)[i];
    case DType::kFloat16:
      return FromHalf(static_cast<const unsigned short*>(data)[i]);
    case DType::kBFloat16:
      return __uint_as_float(static_cast<u32>(static_cast<const unsigned short*>(data)[i]) << 16);
    case DType::kFloat8E4M3:
      return FromE4M3(static_cast<const u8*>(data)[i]);
    case DType::kFloat8E5M2:
      return FromE5M2(static_cast<const u8*>(data)[i]);
    case DType::kUInt64:
      return static_cast<double>(static_cast<const u64*>(data)[i]);
    default:
      return static_cast<double>(LoadInteger(data, i, dtype));
  }
}

// Returns |value| as bits that sort like the numbers. Infinities and NaN are kExponent and above.
__device__ u64 Magnitude(double value) {
  return static_cast<u64>(__double_as_longlong(value)) & kMagnitude;
}

__device__ u64 WarpMax(u64 value) {
  for (int lane = 16; lane > 0; lane /= 2) {
    const u64 other = __shfl_down_sync(0xffffffff, value, lane);
    value = other > value ? other : value;
  }
  return value;
}

// Writes the largest finite |want| into state->largest.
extern "C" __global__ void kiln_largest(const void* want, i64 elements, DType dtype,
                                        CompareState* state) {
  u64 largest = 0;
  for (i64 i = First(); i < elements; i += Step()) {
    const u64 value = Magnitude(LoadDouble(want, i, dtype));
    if (value < kExponent && value > largest) largest = value;
  }
  largest = WarpMax(largest);
  if (threadIdx.x % 32 == 0) atomicMax(&state->largest, largest);
}

// Compares by the rule of compare.h. Runs after kiln_largest.
extern "C" __global__ void kiln_compare(const void* got_data, const void* want_data, i64 elements,
                                        DType dtype, double least, double absolute, double relative,
                                        CompareState* state) {
  const double allowed = least + absolute * __longlong_as_double(static_cast<i64>(state->largest));
  u64 worst = 0;
  u64 different = 0;
  u64 first = ~0ull;
  for (i64 i = First(); i < elements; i += Step()) {
    const double got = LoadDouble(got_data, i, dtype);
    const double want = LoadDouble(want_data, i, dtype);
    const u64 got_bits = Magnitude(got);
    const u64 want_bits = Magnitude(want);
    const u64 error = Magnitude(got - want);
    if (error < kExponent && error > worst) worst = error;
    bool same;
    if (IsExact(dtype)) {
      same = LoadInteger(got_data, i, dtype) == LoadInteger(want_data, i, dtype);
    } else if (got_bits > kExponent || want_bits > kExponent) {
      same = got_bits > kExponent && want_bits > kExponent;
    } else if (got_bits == kExponent || want_bits == kExponent) {
      same = got == want;
    } else {
      same = __longlong_as_double(static_cast<i64>(error)) <=
             allowed + relative * __longlong_as_double(static_cast<i64>(want_bits));
    }
    if (same) continue;
    ++different;
    if (static_cast<u64>(i) < first) first = static_cast<u64>(i);
  }
  worst = WarpMax(worst);
  if (threadIdx.x % 32 == 0) atomicMax(&state->worst, worst);
  if (different == 0) return;
  atomicAdd(&state->different, different);
  atomicMin(&state->first, first);
}

__device__ u64 Mix(u64 z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Adds a hash of each 8 bytes and their place to *sum. The last ones may be fewer than 8.
extern "C" __global__ void kiln_checksum(const u8* data, i64 bytes, u64* sum) {
  const i64 words = bytes / 8;
  u64 total = 0;
  for (i64 i = First(); i <= words; i += Step()) {
    u64 word = 0;
    if (i < words) {
      word = reinterpret_cast<const u64*>(data)[i];
    } else {
      for (i64 at = 8 * words; at < bytes; ++at) word = word << 8 | data[at];
    }
    total += Mix(word + Mix(0x9e3779b97f4a7c15ull * static_cast<u64>(i + 1)));
  }
  for (int lane = 16; lane > 0; lane /= 2) total += __shfl_down_sync(0xffffffff, total, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, total);
}

// Counts into *stray the bytes of both guards that are not `canary`.
extern "C" __global__ void kiln_guards(const u8* before, const u8* after, i64 bytes, u32 canary,
                                       u64* stray) {
  u64 found = 0;
  for (i64 i = First(); i < bytes; i += Step())
    found += (before[i] != canary) + (after[i] != canary);
  if (found > 0) atomicAdd(stray, found);
}

// Returns the element with which element i changes places. The array is cut into pieces whose sizes
// are powers of two, the largest first; within a piece of 2^n elements the places differ by the
// lowest n bits of the mask. So the same mask undoes the change, and masks may follow each other in
// any order.
__device__ i64 PartnerOf(i64 i, i64 count, u64 mask) {
  i64 base = 0;
  while (true) {
    const i64 piece = i64{1} << (63 - __clzll(count - base));
    if (i - base < piece) return base + ((i - base) ^ static_cast<i64>(mask & (piece - 1)));
    base += piece;
  }
}

// Returns 1 for the places that a number selects.
__device__ u64 Selects(u64 places, i64 i) {
  if (places == 0 || places == ~0ull) return places & 1;
  return Mix(places + static_cast<u64>(i)) & 1;
}

template <typename Element>
__device__ void Change(Element* data, i64 count, u64 mask, Element flip, u64 from, u64 to) {
  for (i64 i = First(); i < count; i += Step()) {
    const i64 partner = PartnerOf(i, count, mask);
    if (partner < i) continue;
    const u64 here = Selects(from, i) ^ Selects(to, partner);
    const u64 there = Selects(from, partner) ^ Selects(to, i);
    const Element moved = data[i] ^ static_cast<Element>(here * flip);
    data[i] = data[partner] ^ static_cast<Element>(there * flip);
    data[partner] = moved;
  }
}

// Changes the order of the elements, which have `width` bytes each, and flips bits of some of them
// (changed_calls.h).
extern "C" __global__ void kiln_change(void* data, i64 count, i64 width, u64 mask, u64 flip,
                                       u64 from, u64 to) {
  switch (width) {
    case 1:
      return Change(static_cast<u8*>(data), count, mask, static_cast<u8>(flip), from, to);
    case 2:
      return Change(static_cast<u16*>(data), count, mask, static_cast<u16>(flip), from, to);
    case 4:
      return Change(static_cast<u32*>(data), count, mask, static_cast<u32>(flip), from, to);
    default:
      return Change(static_cast<u64*>(data), count, mask, flip, from, to);
  }
}

// Copies elements whose places depend on the seed alone; all of them in order if `samples` is
// `count`.
extern "C" __global__ void kiln_sample(const u8* data, i64 count, i64 width, u64 seed, u8* into,
                                       i64 samples) {
  for (i64 k = First(); k < samples; k += Step()) {
    const u64 place = samples == count ? k : Mix(seed + k) % count;
    for (i64 byte = 0; byte < width; ++byte) into[k * width + byte] = data[place * width + byte];
  }
}

// Keeps the stream busy while the host queues the calls to be timed.
extern "C" __global__ void kiln_lead_in(u64 nanoseconds) {
  u64 start;
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}
