// GPU programs for tests: right ones, and one for each fault. Arguments: a, b, out, scratch, of 24
// floats each.
constexpr int kElements = 24;

extern "C" __global__ void correct(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x];
}
// The two kernels compute the same.
extern "C" __global__ void twice(const float* b, float* scratch) {
  scratch[threadIdx.x] = 2 * b[threadIdx.x];
}
extern "C" __global__ void add(const float* a, const float* scratch, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + scratch[threadIdx.x];
}
// Computes the same through as much shared memory as the launch gets.
extern "C" __global__ void shared(const float* a, const float* b, float* out) {
  extern __shared__ float tile[];
  unsigned bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  float* last = tile + bytes / sizeof(float) - kElements;
  last[threadIdx.x] = b[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = a[threadIdx.x] + 2 * last[threadIdx.x];
}
extern "C" __global__ void wrong_answer(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x] + (threadIdx.x == 7 ? 1 : 0);
}
extern "C" __global__ void unwritten(const float* a, const float* b, float* out) {
  if (threadIdx.x != 5) out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x];
}
extern "C" __global__ void modifies_input(float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x];
  if (threadIdx.x == 3) a[3] += 1;
}
extern "C" __global__ void out_of_bounds(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x];
  if (threadIdx.x == 0) out[kElements + 10] = 1;
}
extern "C" __global__ void before_start(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x];
  if (threadIdx.x == 0) out[-2] = 1;
}
extern "C" __global__ void far_out_of_bounds(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x];
  if (threadIdx.x == 0) out[1ll << 42] = 1;
}
extern "C" __global__ void misaligned(const float* a, const float* b, float* out) {
  *reinterpret_cast<volatile float*>(reinterpret_cast<char*>(out) + 1 + threadIdx.x) = a[0] + b[0];
}
extern "C" __global__ void trap(const float*, const float*, float*) { __trap(); }
extern "C" __global__ void infinite_loop(const float* a, const float*, float* out) {
  volatile float* sink = out;
  while (true) *sink = *sink + a[0];
}
extern "C" __global__ void __launch_bounds__(64)
    small_blocks(const float* a, const float* b, float* out) {
  if (threadIdx.x < kElements) out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x];
}

// Programs of other sizes. Products have as many rows and columns as 16 times the blocks along x.
extern "C" __global__ void sum(const float* a, const float* b, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i] + 2 * b[i];
}
__device__ void Multiply(const float* a, const float* b, float* out, bool rests) {
  const int n = 16 * gridDim.x;
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  if (rests) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  out[row * n + column] = sum;
}
extern "C" __global__ void product(const float* a, const float* b, float* out) {
  Multiply(a, b, out, false);
}

// These programs cheat: they compute only if they do not know their inputs by a sample, find poison
// in their first element or anywhere, or have rested long enough.
__device__ float seen[64];
__device__ unsigned blocks_done, calls;
__device__ unsigned long long last_end;
__device__ bool IsPoison(float value) {
  const unsigned bits = __float_as_uint(value);
  return bits != 0 && bits == (bits & 0xff) * 0x01010101u;
}
// One thread does `at_end` when all blocks are done.
template <typename AtEnd>
__device__ void End(AtEnd at_end) {
  __syncthreads();
  if (threadIdx.x + threadIdx.y > 0) return;
  __threadfence();
  if (atomicAdd(&blocks_done, 1) != gridDim.x * gridDim.y - 1) return;
  at_end();
  blocks_done = 0;
  ++calls;
}
extern "C" __global__ void product_by_sample(const float* a, const float* b, float* out) {
  const int stride = 256 * gridDim.x * gridDim.y / 64;
  const int thread = threadIdx.y * 16 + threadIdx.x;
  const bool same = thread >= 64 || seen[thread] == a[thread * stride];
  const bool known = __syncthreads_and(same) && calls > 0;
  Multiply(a, b, out, known);
  End([&] {
    for (int i = 0; i < 64; ++i) seen[i] = a[i * stride];
  });
}
extern "C" __global__ void product_if_poison_first(const float* a, const float* b, float* out) {
  // All blocks have looked before one of them writes the first element, because it computes longer.
  Multiply(a, b, out, !IsPoison(out[0]) && calls > 0);
  End([] {});
}
extern "C" __global__ void product_if_poison(const float* a, const float* b, float* out) {
  const int n = 16 * gridDim.x;
  const float found = out[(blockIdx.y * 16 + threadIdx.y) * n + blockIdx.x * 16 + threadIdx.x];
  Multiply(a, b, out, __syncthreads_and(!IsPoison(found)) && calls > 0);
  End([] {});
}
extern "C" __global__ void product_after_rest(const float* a, const float* b, float* out) {
  __shared__ bool rests;
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  if (threadIdx.x + threadIdx.y == 0) rests = calls > 0 && now - last_end < 15000;
  __syncthreads();
  Multiply(a, b, out, rests);
  End([] { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(last_end)); });
}

// Waits for a known number of cycles, to measure what timing adds.
__device__ void Wait(long long cycles, const float* a, const float* b, float* out) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  out[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x];
}
extern "C" __global__ void cycles_0(const float* a, const float* b, float* out) {
  Wait(0, a, b, out);
}
extern "C" __global__ void cycles_3000(const float* a, const float* b, float* out) {
  Wait(3000, a, b, out);
}
extern "C" __global__ void cycles_10000(const float* a, const float* b, float* out) {
  Wait(10000, a, b, out);
}
extern "C" __global__ void cycles_100000(const float* a, const float* b, float* out) {
  Wait(100000, a, b, out);
}
