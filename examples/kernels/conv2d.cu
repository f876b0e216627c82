// A 2D convolution of one image with one filter: output[y][x] is the sum of filter[i][j] times
// image[y + i][x + j]. A thread computes tile_size_y x tile_size_x elements of the output, which
// lie a block apart; the part of the image that a block reads may go through shared memory.
//
// Every tile has to be a whole one: conv2d.toml says so among its restrictions.

#define TILE_H (block_size_y * tile_size_y)
#define TILE_W (block_size_x * tile_size_x)
#define IMAGE_W (W + FILTER_W - 1)
#define SHARED_H (TILE_H + FILTER_H - 1)
// Rows of an even number of floats begin in the same banks: one more moves them apart.
#define SHARED_W (TILE_W + FILTER_W - 1 + use_padding)
#define THREADS (block_size_x * block_size_y)

#if read_only
#define LOAD(address) __ldg(address)
#else
#define LOAD(address) (*(address))
#endif

__global__ void __launch_bounds__(THREADS)
    conv2d(const float* image, const float* filter, float* output) {
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * TILE_H, column = blockIdx.x * TILE_W;

#if use_shared
  __shared__ float part[SHARED_H][SHARED_W];
  for (int y = ty; y < SHARED_H; y += block_size_y) {
    for (int x = tx; x < TILE_W + FILTER_W - 1; x += block_size_x)
      part[y][x] = LOAD(&image[(row + y) * IMAGE_W + column + x]);
  }
  __syncthreads();
#endif

  float sum[tile_size_y][tile_size_x] = {};
  for (int i = 0; i < FILTER_H; ++i) {
#if unroll_filter
#pragma unroll
#else
#pragma unroll 1
#endif
    for (int j = 0; j < FILTER_W; ++j) {
      const float weight = LOAD(&filter[i * FILTER_W + j]);
      for (int y = 0; y < tile_size_y; ++y) {
        for (int x = 0; x < tile_size_x; ++x) {
          const int v = ty + y * block_size_y + i, u = tx + x * block_size_x + j;
#if use_shared
          sum[y][x] += part[v][u] * weight;
#else
          sum[y][x] += LOAD(&image[(row + v) * IMAGE_W + column + u]) * weight;
#endif
        }
      }
    }
  }

  for (int y = 0; y < tile_size_y; ++y) {
    for (int x = 0; x < tile_size_x; ++x)
      output[(row + ty + y * block_size_y) * W + column + tx + x * block_size_x] = sum[y][x];
  }
}
