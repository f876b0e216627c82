// Search parameters by name (facts §3.1), with the defaults that this code uses.
#pragma once

#include <array>
#include <map>
#include <string>

#include "base/status.h"
#include "compiler/ir/hints.h"

namespace kiln::search {

struct Parameters {
  // Tile letters from outermost to innermost: S splits every spatial axis, R every reduction axis.
  std::string cpu_tiling = "SSRSRS";
  std::string gpu_tiling = "SSSRRSRS";  // blocks, vthreads, threads, ...
  int max_innermost_split_factor = 64;
  // Lanes of one vectorized loop. The predecessor's default is 16; several vectors per row make
  // better register tiles.
  int max_vectorize_size = 64;
  bool change_compute_location = true;
  // GPU: reductions of tiled stages are also shared out over blocks and over groups of threads.
  bool reduction_splits = true;
  // ... and over the blocks of clusters, where the architecture has them.
  bool cluster_splits = true;
  // GPU: tiles in shared memory may be fetched ahead of their use: one iteration through registers;
  // by asynchronous copies, where the architecture has them, up to max_fetch_depth - 1 iterations,
  // into max_fetch_depth buffers.
  bool fetch_ahead = true;
  bool async_copies = true;
  int max_fetch_depth = 4;
  // GPU: what is read across the rows of what is stored may go through shared memory, a tile at a
  // time.
  bool copy_tiles = true;
  // By ir::Hint: is it drawn, where a search has a use for it? HintChoice names the parameters.
  std::array<bool, ir::kNumHints> hints = [] {
    std::array<bool, ir::kNumHints> all;
    all.fill(true);
    return all;
  }();
  // GPU: tiles in shared memory may be transposed and their rows padded.
  bool shared_layouts = true;
  // GPU kernels that are not tiled (pooling, elementwise) and reductions across threads: a warp per
  // block, as the predecessor begins with, or 1 to 32 warps by chance.
  bool vary_thread_counts = true;
  // Axes whose divisors make poor tiles (49, 127, 1009) are also tiled as if they were a little
  // longer: the last tile is guarded.
  bool uneven_tiles = true;
  // How many samples in a row may be refused or already known before a policy says the space is
  // exhausted.
  int max_futile_samples = 2000;

  // ---- the learned search
  double eps_greedy = 0.05;  // share of a round that is chosen by chance
  // The same while no learned model ranks: a model learns from contrast.
  double draft_eps_greedy = 0.25;
  // States that the sampler makes each round, and below how many it tries harder before it takes
  // the space for small.
  int sample_init_population = 512;
  int sample_init_min_population = 50;
  // Of the population: the best measured states join each round's first generation.
  double sample_init_use_measured_ratio = 0.2;
  int evolutionary_search_population = 2048;
  int evolutionary_search_num_iters = 4;
  // Of a generation: the rest are the best of the one before.
  double evolutionary_search_mutation_prob = 0.85;
  double crossover_prob = 0.1;        // of the changed ones
  double measured_parent_prob = 0.2;  // a parent is one of the best measured states
  // Of a round, so many are one change of any kind away from one of the best measured states,
  // whatever the model thinks of them: it has seen most choices in few and bad schedules. Fewer
  // while there are few results.
  double neighbour_share = 0.3;
  // Of a round's candidates: with equal tile lengths everywhere, and (as a share) with equal
  // outermost tiles.
  int max_same_tiles = 2;        // also with rows that are equal to the last bit
  int max_same_tile_shapes = 6;  // equal but for the order of unrolled loops
  double max_same_outer_tiles = 0.125;
  // Of a round, for each sketch at least; less for one that has proved slow.
  double least_sketch_share = 0.06;
};

// "max_vectorize_size" -> 32, ... Unknown names: error with the list of known ones.
StatusOr<Parameters> MakeParameters(const std::map<std::string, double>& overrides);

}  // namespace kiln::search
