// C = A B of row-major matrices, A of M x K and B of K x N. A block of threads computes a tile of C
// and goes along K in steps of tile_size_k, whose parts of A and B it keeps in shared memory; each
// thread has tile_size_y x tile_size_x sums in registers.
//
// Every tile has to be a whole one: matmul.toml says so among its restrictions.

#define TILE_M (block_size_y * tile_size_y)
#define TILE_N (block_size_x * tile_size_x)
#define THREADS (block_size_x * block_size_y)

__global__ void __launch_bounds__(THREADS)
    matmul(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C) {
  __shared__ float a[TILE_M][tile_size_k];
  __shared__ float b[tile_size_k][TILE_N];
  const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * block_size_x + tx;
  const int row = blockIdx.y * TILE_M, column = blockIdx.x * TILE_N;

  float sum[tile_size_y][tile_size_x] = {};
  for (int k0 = 0; k0 < K; k0 += tile_size_k) {
    for (int i = thread; i < TILE_M * tile_size_k; i += THREADS)
      a[i / tile_size_k][i % tile_size_k] = A[(row + i / tile_size_k) * K + k0 + i % tile_size_k];
    for (int i = thread; i < tile_size_k * TILE_N; i += THREADS)
      b[i / TILE_N][i % TILE_N] = B[(k0 + i / TILE_N) * N + column + i % TILE_N];
    __syncthreads();

#pragma unroll unroll_k
    for (int k = 0; k < tile_size_k; ++k) {
      float left[tile_size_y];
      for (int y = 0; y < tile_size_y; ++y) left[y] = a[ty + y * block_size_y][k];
      for (int x = 0; x < tile_size_x; ++x) {
        const float right = b[k][tx + x * block_size_x];
        for (int y = 0; y < tile_size_y; ++y) sum[y][x] += left[y] * right;
      }
    }
    __syncthreads();
  }

  for (int y = 0; y < tile_size_y; ++y) {
    for (int x = 0; x < tile_size_x; ++x)
      C[(row + ty + y * block_size_y) * N + column + tx + x * block_size_x] = sum[y][x];
  }
}
