// C = A B of row-major matrices, A of M x K and B of K x N. Each call computes one tile of C, of
// TILE_I rows and TILE_J columns; the blocks of the grid run on all cores.
//
// Every tile has to be a whole one: matmul_c.toml says so among its restrictions.
#include <stdint.h>

void matmul(const float* restrict A, const float* restrict B, float* restrict C, int64_t block_x,
            int64_t block_y) {
  const int64_t row = block_y * TILE_I, column = block_x * TILE_J;
  float sum[TILE_I][TILE_J] = {{0}};
  for (int64_t k0 = 0; k0 < K; k0 += STEP_K) {
#pragma GCC unroll 64
    for (int64_t k = k0; k < k0 + STEP_K; ++k) {
#if ROWS_INSIDE
      for (int j = 0; j < TILE_J; ++j) {
        for (int i = 0; i < TILE_I; ++i) sum[i][j] += A[(row + i) * K + k] * B[k * N + column + j];
      }
#else
      for (int i = 0; i < TILE_I; ++i) {
        for (int j = 0; j < TILE_J; ++j) sum[i][j] += A[(row + i) * K + k] * B[k * N + column + j];
      }
#endif
    }
  }
  for (int i = 0; i < TILE_I; ++i) {
    for (int j = 0; j < TILE_J; ++j) C[(row + i) * N + column + j] = sum[i][j];
  }
}
