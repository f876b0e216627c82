// GPU programs as text, of the forms that lowering makes.
#pragma once

#include <string_view>

namespace kiln::codegen {

// C = A * B with tiles in shared memory, cooperative vector fetches, virtual threads unrolled
// inside.
inline constexpr std::string_view kTiledMatmul = R"(
program(A: input float32[64, 48], B: input float32[48, 64], C: output float32[64, 64]) {
  stage A.shared
  stage B.shared
  stage C.local
  stage C
  kernel matmul grid [4, 1, 1] block [64, 1, 1] {
    blockIdx.x b in 0..4 {
      threadIdx.x t in 0..64 {
        alloc C.local: local float32[4, 4]
        alloc A.shared: shared float32[32, 16]
        alloc B.shared: shared float32[16, 32]
        for i.init in 0..4 {
          for j.init in 0..4 {
            C.local[i.init, j.init] = 0.0 @ C.local
          }
        }
        for k.0 in 0..3 {
          for f0 in 0..2 {
              vectorize f2 in 0..4 {
                A.shared[(f0*256 + t*4 + f2) // 16, (f0*256 + t*4 + f2) % 16] = A[b // 2 * 32 + (f0*256 + t*4 + f2) // 16, k.0*16 + (f0*256 + t*4 + f2) % 16] @ A.shared
              }
          }
          for g0 in 0..2 {
              vectorize g2 in 0..4 {
                B.shared[(g0*256 + t*4 + g2) // 32, (g0*256 + t*4 + g2) % 32] = B[k.0*16 + (g0*256 + t*4 + g2) // 32, b % 2 * 32 + (g0*256 + t*4 + g2) % 32] @ B.shared
              }
          }
          barrier
          for k.1 in 0..16 {
            unroll i in 0..4 {
              vectorize j in 0..4 {
                C.local[i, j] = C.local[i, j] + A.shared[t // 8 * 4 + i, k.1] * B.shared[k.1, t % 8 * 4 + j] @ C.local
              }
            }
          }
          barrier
        }
        for i.w in 0..4 {
          for j.w in 0..4 {
            C[b // 2 * 32 + t // 8 * 4 + i.w, b % 2 * 32 + t % 8 * 4 + j.w] = max(C.local[i.w, j.w], 0.0) @ C
          }
        }
      }
    }
  }
}
)";

// 3x3 convolution, padded: conditions around loads, uniform over the lanes of a fetch.
inline constexpr std::string_view kConv = R"(
program(data: input float32[7, 7, 8], weight: input float32[3, 3, 8, 16], bias: input float32[16], out: output float32[7, 7, 16]) {
  stage pad.shared
  stage weight.shared
  stage conv
  stage relu
  kernel conv2d grid [7, 1, 1] block [28, 1, 1] {
    blockIdx.x y in 0..7 {
      threadIdx.x t in 0..28 {
        alloc conv: local float32[4]
        alloc pad.shared: shared float32[3, 9, 8]
        alloc weight.shared: shared float32[3, 8, 16]
        unroll c.init in 0..4 {
          conv[c.init] = 0.0 @ conv
        }
        for f0 in 0..2 {
            if f0*28 + t < 54 {
              vectorize f2 in 0..4 {
                pad.shared[(f0*112 + t*4 + f2) // 72, (f0*112 + t*4 + f2) % 72 // 8, (f0*112 + t*4 + f2) % 8] = if(y + (f0*112 + t*4 + f2) // 72 >= 1 && y + (f0*112 + t*4 + f2) // 72 < 8 && (f0*112 + t*4 + f2) % 72 // 8 >= 1 && (f0*112 + t*4 + f2) % 72 // 8 < 8, data[y + (f0*112 + t*4 + f2) // 72 - 1, (f0*112 + t*4 + f2) % 72 // 8 - 1, (f0*112 + t*4 + f2) % 8], 0.0) @ pad.shared
              }
            }
        }
        for ky in 0..3 {
          for g0 in 0..14 {
              if g0*28 + t < 384 {
                weight.shared[(g0*28 + t) // 128, (g0*28 + t) // 16 % 8, (g0*28 + t) % 16] = weight[ky, (g0*28 + t) // 128, (g0*28 + t) // 16 % 8, (g0*28 + t) % 16] @ weight.shared
              }
          }
          barrier
          for kx in 0..3 {
            for ci in 0..8 {
              unroll c in 0..4 {
                conv[c] = conv[c] + pad.shared[ky, t // 4 + kx, ci] * weight.shared[kx, ci, t % 4 * 4 + c] @ conv
              }
            }
          }
          barrier
        }
        vectorize c.w in 0..4 {
          out[y, t // 4, t % 4 * 4 + c.w] = max(conv[c.w] + bias[t % 4 * 4 + c.w], 0.0) @ relu
        }
      }
    }
  }
}
)";

// Rows summed by the threads of a block through a tree in shared memory, then scaled.
inline constexpr std::string_view kReduction = R"(
program(x: input float32[5, 200], y: output float32[5]) {
  stage partial
  stage tree
  stage y
  kernel reduce grid [5, 1, 1] block [32, 1, 1] {
    blockIdx.x row in 0..5 {
      threadIdx.x t in 0..32 {
        alloc acc: local float32[1]
        alloc red: shared float32[32]
        acc[0] = 0.0 @ partial
        for k in 0..7 {
          if k*32 + t < 200 {
            acc[0] = acc[0] + x[row, k*32 + t] @ partial
          }
        }
        red[t] = acc[0] @ tree
        barrier
        if t < 16 { red[t] = red[t] + red[t + 16] @ tree }
        barrier
        if t < 8 { red[t] = red[t] + red[t + 8] @ tree }
        barrier
        if t < 4 { red[t] = red[t] + red[t + 4] @ tree }
        barrier
        if t < 2 { red[t] = red[t] + red[t + 2] @ tree }
        barrier
        if t < 1 { y[row] = exp(rsqrt(abs(red[t] + red[t + 1]) + 1.0)) @ y }
      }
    }
  }
}
)";

// Two kernels, virtual threads, a workspace, odd extents with a guard.
inline constexpr std::string_view kOdd = R"(
program(a: input float32[13, 11], r: input int64[13] below 13, out: output float32[13, 11], w: workspace float32[13, 11]) {
  stage first
  stage second
  kernel first grid [5, 1, 1] block [32, 1, 1] {
    blockIdx.x b in 0..5 {
      threadIdx.x t in 0..32 {
        if b*32 + t < 143 {
          w[(b*32 + t) // 11, (b*32 + t) % 11] = tanh(a[(b*32 + t) // 11, (b*32 + t) % 11]) @ first
        }
      }
    }
  }
  kernel second grid [1, 1, 1] block [4, 4, 1] {
    vthread v in 0..4 {
      threadIdx.y ty in 0..4 {
        threadIdx.x tx in 0..4 {
          for i in 0..3 {
            if tx + i*4 < 11 && v*4 + ty < 13 {
              out[v*4 + ty, tx + i*4] = w[r[v*4 + ty], tx + i*4] @ second
            }
          }
        }
      }
    }
  }
}
)";

// Four blocks of a cluster have a part of the sums each, and share out their elements.
inline constexpr std::string_view kClusterSum = R"(
program(a: input float32[2, 4, 32], out: output float32[2, 32]) {
  stage part
  stage sum
  stage out
  kernel sum grid [2, 1, 1] block [8, 1, 1] cluster 4 {
    blockIdx.x b in 0..2 {
      alloc part: cluster float32[4, 32]
      cluster p in 0..4 {
        threadIdx.x t in 0..8 {
          vectorize v in 0..4 {
            part[p, t*4 + v] = a[b, p, t*4 + v]*2.0 @ part
          }
        }
      }
      cluster_barrier
      cluster q in 0..4 {
        threadIdx.x u in 0..8 {
          if u < 2 {
            alloc sum: local float32[4]
            for i in 0..4 {
              sum[i] = 0.0 @ sum
            }
            unroll r in 0..4 {
              vectorize j in 0..4 {
                sum[j] = sum[j] + part[r, q*8 + u*4 + j] @ sum
              }
            }
            vectorize w in 0..4 {
              out[b, q*8 + u*4 + w] = max(sum[w], 0.5) @ out
            }
          }
        }
      }
      cluster_barrier
    }
  }
}
)";

}  // namespace kiln::codegen
