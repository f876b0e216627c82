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
