// Search parameters by name: every number that steers a search and is no fact of the task or the
// device, in one table with what it means and where its value comes from.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/ir/hints.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::search {

// X(type, name, default, least, most, what it means, source of the value). A source is a page of
// docs/ with the measurement, a file of another program, or "chosen by Kiln: untested". A
// probability or weight says what happens so likely.
// clang-format off
#define KILN_SEARCH_PARAMETERS(X)                                                                 \
  /* The space: what sampling and mutation may draw. */                                           \
  X(int, max_innermost_split_factor, 64, 1, 1e9,                                                  \
    "longest innermost tile",                                                                     \
    "as in TVM v0.14 (auto_scheduler/search_policy.py)")                                          \
  X(int, max_vectorize_size, 64, 1, 1e9,                                                          \
    "lanes of one vectorized loop; several vectors of a row make better register "                \
    "tiles than one",                                                                             \
    "chosen by Kiln: untested; TVM v0.14 has 16 (auto_scheduler/search_policy.py)")               \
  X(bool, uneven_tiles, true, 0, 1,                                                               \
    "axes whose divisors make poor tiles (49, 127, 1009) are also tiled as if they "              \
    "were a little longer, and the last tile is guarded",                                         \
    "chosen by Kiln: untested")                                                                   \
  X(bool, reduction_splits, true, 0, 1,                                                           \
    "GPU: reductions of tiled stages are also shared out over blocks and over groups "            \
    "of threads",                                                                                 \
    "docs/matrix-units.md: split sums are the best of 56x56 and 28x28 layers")                    \
  X(bool, cluster_splits, true, 0, 1,                                                             \
    "GPU: reductions are also shared out over the blocks of clusters, where the "                 \
    "architecture has them; not without reduction_splits",                                        \
    "chosen by Kiln: untested")                                                                   \
  X(bool, fetch_ahead, true, 0, 1,                                                                \
    "GPU: tiles in shared memory may be fetched ahead of their use, one iteration "               \
    "through registers",                                                                          \
    "docs/experiments/code-generation-cuda.md: three programs, fetched at once and ahead")        \
  X(bool, async_copies, true, 0, 1,                                                               \
    "GPU: tiles may be fetched ahead by asynchronous copies, where the architecture "             \
    "has them, into max_fetch_depth buffers",                                                     \
    "docs/experiments/code-generation-cuda.md: three programs, through registers and by "         \
    "copies")                                                                                     \
  X(int, max_fetch_depth, 4, 2, schedule::BufferingStep::kMaxDepth,                               \
    "GPU: buffers of a tile that asynchronous copies fill",                                       \
    "docs/experiments/code-generation-cuda.md: three programs, 2 to 4 buffers")                   \
  X(int, max_warpgroup_fetch_depth, schedule::BufferingStep::kMaxDepth, 2,                        \
    schedule::BufferingStep::kMaxDepth,                                                           \
    "GPU: the same of tiles that matrix units of four warps read",                                \
    "chosen by Kiln: untested; the most that a BF step may have")                                 \
  X(bool, copy_tiles, true, 0, 1,                                                                 \
    "GPU: what is read across the rows of what is stored may go through shared "                  \
    "memory, a tile at a time",                                                                   \
    "chosen by Kiln: untested")                                                                   \
  X(bool, merged_rows, true, 0, 1,                                                                \
    "GPU: rows of a product for matrix units that several axes number are one axis, where "       \
    "nothing tells these apart",                                                                  \
    "a convolution 16,28,28,512,128 of 1x1 takes 8.0 us on an H200, without it 12.0")             \
  X(bool, joined_sums, true, 0, 1,                                                                \
    "GPU: products for matrix units with a common factor, all of which one operator reads, may "  \
    "be one kernel of several sums",                                                              \
    "chosen by Kiln: untested")                                                                   \
  X(bool, transposed_factors, true, 0, 1,                                                         \
    "GPU: a kernel of its own may transpose a factor of 32 or 8 bits as matrix units of four "    \
    "warps read it",                                                                              \
    "matmul 4096 in TF32 takes 385 us on an H200, without it 892")                                \
  X(bool, unpacked_factors, true, 0, 1,                                                           \
    "GPU: a factor of matrix units that inputs of fewer bytes give may be computed where the "    \
    "product reads it",                                                                           \
    "weights of 4 bits, 16x4096x4096, take 7.9 us on an H200, without it 15.1")                   \
  X(bool, key_splits, true, 0, 1,                                                                 \
    "GPU: several blocks may share the keys of a softmax between two products, where few rows "   \
    "have many keys",                                                                             \
    "docs/experiments/matrix-units.md: attention of one query")                                   \
  X(bool, shared_layouts, true, 0, 1,                                                             \
    "GPU: tiles in shared memory may be transposed and their rows padded",                        \
    "docs/experiments/code-generation-cuda.md: matmul 2048, rows padded and transposed")          \
  X(bool, vary_thread_counts, true, 0, 1,                                                         \
    "GPU: kernels that are not tiled and reductions across threads have 1 to 32 "                 \
    "warps, not one",                                                                             \
    "chosen by Kiln: untested")                                                                   \
  X(int, max_sketches, 256, 1, 1e6,                                                               \
    "sketches of a computation; those of large ones have fewer",                                  \
    "chosen by Kiln: untested")                                                                   \
  X(int, least_copied_elements, 4096, 1, 1e9,                                                     \
    "GPU: smaller tensors are not copied through shared memory",                                  \
    "chosen by Kiln: untested")                                                                   \
  X(int, least_transposed_mflop, 500, 0, 1e9,                                                     \
    "GPU: millions of operations of a product without which no factor is transposed first",       \
    "chosen by Kiln: untested")                                                                   \
  X(int, least_split_row, 4096, 2, 1e9,                                                           \
    "GPU: terms of a row that several blocks reduce, where there are few rows",                   \
    "chosen by Kiln: untested")                                                                   \
  X(int, least_split_keys, 512, 32, 1e9,                                                          \
    "GPU: keys of a softmax without which no blocks share them",                                  \
    "chosen by Kiln: untested")                                                                   \
  /* Sampling: how likely what is drawn. */                                                       \
  X(double, matrix_unit_prob, 0.7, 0, 1,                                                          \
    "GPU: a sum of products of a type that matrix units multiply gets a tile for them, where "    \
    "the target has such",                                                                        \
    "docs/matrix-units.md: four tasks on an H200 with 0.7 and with 0")                            \
  X(double, warpgroup_prob, 0.5, 0, 1,                                                            \
    "GPU: such a tile is one of four warps together, where the architecture has units for them",  \
    "chosen by Kiln: untested")                                                                   \
  X(double, uneven_tile_prob, 0.5, 0, 1,                                                          \
    "a tile of an axis with poor divisors is drawn as of a longer one",                           \
    "chosen by Kiln: untested")                                                                   \
  X(double, uneven_short_tile_prob, 0.25, 0, 1,                                                   \
    "the same of an axis up to 8: most tasks have several",                                       \
    "chosen by Kiln: untested")                                                                   \
  X(int, tile_draws, 300, 1, 1e6,                                                                 \
    "GPU: draws of the tiles of one stage until one is legal and accepted",                       \
    "chosen by Kiln: untested")                                                                   \
  X(int, few_threads, 64, 1, 1024,                                                                \
    "GPU: a draw with fewer threads in a block than this is accepted less often",                 \
    "chosen by Kiln: untested")                                                                   \
  X(double, few_threads_factor, 0.3, 1e-3, 1,                                                     \
    "GPU: the probability of a draw that few_threads is about is so many times as "               \
    "large",                                                                                      \
    "chosen by Kiln: untested")                                                                   \
  X(int, many_threads, 512, 1, 1024,                                                              \
    "GPU: a draw with more threads in a block than this is accepted less often",                  \
    "chosen by Kiln: untested")                                                                   \
  X(double, many_threads_factor, 0.2, 1e-3, 1,                                                    \
    "GPU: the probability of a draw that many_threads is about is so many times as "              \
    "large",                                                                                      \
    "chosen by Kiln: untested")                                                                   \
  X(int, few_outputs, 4, 1, 1e6,                                                                  \
    "GPU: a draw with fewer results for each thread than this is accepted less often",            \
    "chosen by Kiln: untested")                                                                   \
  X(double, few_outputs_factor, 0.2, 1e-3, 1,                                                     \
    "GPU: the probability of a draw that few_outputs is about is so many times as "               \
    "large",                                                                                      \
    "chosen by Kiln: untested")                                                                   \
  X(int, many_outputs, 64, 1, 1e6,                                                                \
    "GPU: a draw with more results for each thread than this is accepted less often",             \
    "chosen by Kiln: untested")                                                                   \
  X(double, many_outputs_factor, 0.4, 1e-3, 1,                                                    \
    "GPU: the probability of a draw that many_outputs is about is so many times as "              \
    "large",                                                                                      \
    "chosen by Kiln: untested")                                                                   \
  X(int, too_many_outputs, 128, 1, 1e6,                                                           \
    "GPU: a draw with more results for each thread than this is accepted even less "              \
    "often",                                                                                      \
    "chosen by Kiln: untested")                                                                   \
  X(double, too_many_outputs_factor, 0.05, 1e-3, 1,                                               \
    "GPU: the probability of a draw that too_many_outputs is about is so many times "             \
    "as large",                                                                                   \
    "chosen by Kiln: untested")                                                                   \
  X(int, idle_divisor, 2, 1, 1e6,                                                                 \
    "GPU: a draw with so many times fewer blocks than there are multiprocessors is "              \
    "accepted less often",                                                                        \
    "chosen by Kiln: untested")                                                                   \
  X(double, idle_factor, 0.2, 1e-3, 1,                                                            \
    "GPU: the probability of a draw that idle_divisor is about is so many times as "              \
    "large",                                                                                      \
    "chosen by Kiln: untested")                                                                   \
  X(int, mostly_idle_divisor, 8, 1, 1e6,                                                          \
    "GPU: a draw with so many times fewer blocks than there are multiprocessors is "              \
    "accepted even less often",                                                                   \
    "chosen by Kiln: untested")                                                                   \
  X(double, mostly_idle_factor, 0.2, 1e-3, 1,                                                     \
    "GPU: the probability of a draw that mostly_idle_divisor is about is so many "                \
    "times as large",                                                                             \
    "chosen by Kiln: untested")                                                                   \
  X(int, many_block_rounds, 32, 1, 1e6,                                                           \
    "GPU: a draw with more blocks than so many for each multiprocessor is accepted "              \
    "less often",                                                                                 \
    "chosen by Kiln: untested")                                                                   \
  X(double, many_block_rounds_factor, 0.3, 1e-3, 1,                                               \
    "GPU: the probability of a draw that many_block_rounds is about is so many times "            \
    "as large",                                                                                   \
    "chosen by Kiln: untested")                                                                   \
  X(int, short_fetch, 8, 1, 1e9,                                                                  \
    "GPU: elements of the reduction that the groups of a block fetch at a time: fewer "           \
    "are drawn less often",                                                                       \
    "chosen by Kiln: untested")                                                                   \
  X(int, long_fetch, 128, 1, 1e9,                                                                 \
    "GPU: the same: more are drawn less often",                                                   \
    "chosen by Kiln: untested")                                                                   \
  X(double, odd_fetch_weight, 0.2, 1e-3, 1,                                                       \
    "GPU: groups that fetch less than short_fetch or more than long_fetch are drawn "             \
    "so likely, others 1",                                                                        \
    "chosen by Kiln: untested")                                                                   \
  X(int, least_part_terms, 256, 1, 1e9,                                                           \
    "GPU: terms of a part of a row that blocks share",                                            \
    "chosen by Kiln: untested")                                                                   \
  X(int, most_parts_per_multiprocessor, 16, 1, 1e6,                                               \
    "GPU: parts of rows for each multiprocessor",                                                 \
    "chosen by Kiln: untested")                                                                   \
  X(double, idle_parts_weight, 0.2, 1e-3, 1,                                                      \
    "GPU: numbers of parts that leave half of the device idle are drawn so likely, "              \
    "others 1",                                                                                   \
    "chosen by Kiln: untested")                                                                   \
  X(double, not_ahead_prob, 0.3, 1e-3, 0.5,                                                       \
    "GPU: tiles are not fetched ahead",                                                           \
    "chosen by Kiln: untested")                                                                   \
  X(double, registers_ahead_prob, 0.3, 1e-3, 0.5,                                                 \
    "GPU: tiles are fetched ahead through registers; what is left is for asynchronous "           \
    "copies, all depths alike",                                                                   \
    "chosen by Kiln: untested")                                                                   \
  X(double, layout_move_prob, 0.6, 0, 1,                                                          \
    "GPU: a tile in shared memory is transposed, where rows of a register tile are "              \
    "not contiguous",                                                                             \
    "chosen by Kiln: untested")                                                                   \
  X(double, layout_move_bytes_prob, 0.15, 0, 1,                                                   \
    "GPU: the same of bytes, whose products are summed four at a time where the "                 \
    "reduction is contiguous",                                                                    \
    "chosen by Kiln: untested")                                                                   \
  X(double, pad_prob, 0.5, 0, 1,                                                                  \
    "GPU: rows of a tile in shared memory are padded",                                            \
    "chosen by Kiln: untested")                                                                   \
  X(double, pad_varying_prob, 0.1, 0, 1,                                                          \
    "GPU: the same where the innermost axis is one that register tiles move along",               \
    "chosen by Kiln: untested")                                                                   \
  X(double, pad_copy_prob, 0.9, 0, 1,                                                             \
    "GPU: the same of a tile that is copied through shared memory",                               \
    "chosen by Kiln: untested")                                                                   \
  X(double, pad_matrix_prob, 0.85, 0, 1,                                                          \
    "GPU: the same of a tile that matrix units read",                                             \
    "chosen by Kiln: untested")                                                                   \
  X(int, sample_init_population, 512, 1, 1e6,                                                     \
    "states that are sampled for a round",                                                        \
    "chosen by Kiln: untested; TVM v0.14 draws 2048 at a time "                                   \
    "(auto_scheduler/search_policy/sketch_policy.cc)")                                            \
  X(int, sample_init_min_population, 50, 1, 1e6,                                                  \
    "fewer samples than this: the space is taken for small",                                      \
    "as in TVM v0.14 (auto_scheduler/search_policy.py)")                                          \
  X(int, draws_per_sample, 32, 1, 1e6,                                                            \
    "draws of one sample until one is legal",                                                     \
    "chosen by Kiln: untested")                                                                   \
  X(int, max_rejected_draws, 2000, 1, 1e9,                                                        \
    "so many samples in a row that are refused or known end the space",                           \
    "chosen by Kiln: untested")                                                                   \
  /* Evolution. */                                                                                \
  X(double, sample_init_use_measured_ratio, 0.2, 0, 1,                                            \
    "share of the first generation that are the best measured states",                            \
    "as in TVM v0.14 (auto_scheduler/search_policy.py)")                                          \
  X(int, evolutionary_search_population, 2048, 1, 1e6,                                            \
    "states of a generation",                                                                     \
    "as in TVM v0.14 (auto_scheduler/search_policy.py)")                                          \
  X(int, evolutionary_search_num_iters, 4, 0, 1000,                                               \
    "generations",                                                                                \
    "as in TVM v0.14 (auto_scheduler/search_policy.py)")                                          \
  X(double, evolutionary_search_mutation_prob, 0.85, 0, 1,                                        \
    "share of a generation that is new; the rest are the best of the one before",                 \
    "as in TVM v0.14 (auto_scheduler/search_policy.py)")                                          \
  X(double, crossover_prob, 0.1, 0, 1,                                                            \
    "share of the new ones that have two parents",                                                \
    "chosen by Kiln: untested; TVM v0.14 has no crossover")                                       \
  X(double, crossover_stray_prob, 0.15, 0, 1,                                                     \
    "one split is the other parent's than the rest of its stage",                                 \
    "chosen by Kiln: untested")                                                                   \
  X(double, measured_parent_prob, 0.2, 0, 1,                                                      \
    "a parent is one of the best measured states",                                                \
    "chosen by Kiln: untested")                                                                   \
  X(int, max_elites, 64, 1, 1e6,                                                                  \
    "the best measured states that are parents: a tenth of all, at most so many",                 \
    "chosen by Kiln: untested")                                                                   \
  X(int, min_elites, 8, 1, 1e6,                                                                   \
    "the same: at least so many",                                                                 \
    "chosen by Kiln: untested")                                                                   \
  X(double, niche_prob, 0.3, 0, 1,                                                                \
    "a parent is of a niche, a sketch with a kind of matrix units, that is chosen first",         \
    "docs/experiments/search.md has niches and none; the number was chosen by Kiln: "             \
    "untested")                                                                                   \
  X(int, niche_survivors, 32, 0, 1e6,                                                             \
    "states of each niche that are kept for the choice of candidates, whatever their "            \
    "score",                                                                                      \
    "docs/experiments/search.md has niches and none; the number was chosen by Kiln: "             \
    "untested")                                                                                   \
  X(int, tournament_size, 3, 1, 1000,                                                             \
    "the best of so many random states is a parent",                                              \
    "chosen by Kiln: untested")                                                                   \
  X(int, child_attempts, 8, 1, 1000,                                                              \
    "changes that are tried for one child",                                                       \
    "chosen by Kiln: untested")                                                                   \
  X(double, tile_single_move_prob, 0.6, 0, 1,                                                     \
    "a change of tiles moves one factor between two levels of a split",                           \
    "chosen by Kiln: untested")                                                                   \
  X(double, tile_several_moves_prob, 0.15, 0, 1,                                                  \
    "a change of tiles moves two to four factors",                                                \
    "chosen by Kiln: untested")                                                                   \
  X(double, tile_exchange_prob, 0.15, 0, 1,                                                       \
    "a change of tiles exchanges a factor between two splits; else one split is drawn "           \
    "anew",                                                                                       \
    "chosen by Kiln: untested")                                                                   \
  X(double, tile_round_prob, 0.2, 0, 1,                                                           \
    "where tiles may be uneven a change rounds one level to a power of two instead",              \
    "chosen by Kiln: untested")                                                                   \
  X(double, tile_prime_factor_prob, 0.75, 0, 1,                                                   \
    "the factor that moves is a prime; else any divisor",                                         \
    "chosen by Kiln: untested")                                                                   \
  X(double, mutate_tiles_cpu, 0.86, 0, 1,                                                         \
    "weight of changes of tiles among all, on a CPU",                                             \
    "chosen by Kiln: untested; TVM v0.14 has 0.9 "                                                \
    "(auto_scheduler/search_policy/sketch_policy.cc)")                                            \
  X(double, mutate_tiles_gpu, 0.61, 0, 1,                                                         \
    "weight of changes of tiles among all, on a GPU",                                             \
    "chosen by Kiln: untested; TVM v0.14 has 0.9 "                                                \
    "(auto_scheduler/search_policy/sketch_policy.cc) and fewer kinds of changes")                 \
  X(double, mutate_threads, 0.06, 0, 1,                                                           \
    "GPU: weight of changes of the shapes of kernels that are not tiled",                         \
    "chosen by Kiln: untested")                                                                   \
  X(double, mutate_fetch_width, 0.06, 0, 1,                                                       \
    "GPU: weight of changes of the elements that a thread fetches at once",                       \
    "chosen by Kiln: untested")                                                                   \
  X(double, mutate_buffering, 0.06, 0, 1,                                                         \
    "GPU: weight of changes of how far ahead tiles are fetched",                                  \
    "chosen by Kiln: untested")                                                                   \
  X(double, mutate_layout, 0.06, 0, 1,                                                            \
    "GPU: weight of changes of layouts in shared memory",                                         \
    "chosen by Kiln: untested")                                                                   \
  X(double, mutate_location, 0.05, 0, 1,                                                          \
    "CPU: weight of changes of where a stage is computed",                                        \
    "as in TVM v0.14 (auto_scheduler/search_policy/sketch_policy.cc)")                            \
  X(double, mutate_parallel, 0.02, 0, 1,                                                          \
    "CPU: weight of changes of how many loops run in parallel",                                   \
    "chosen by Kiln: untested; TVM v0.14 has 0.01 "                                               \
    "(auto_scheduler/search_policy/sketch_policy.cc)")                                            \
  X(double, mutate_vectorize, 0.03, 0, 1,                                                         \
    "CPU: weight of changes of how many loops are one vector",                                    \
    "chosen by Kiln: untested")                                                                   \
  /* A round: which candidates are measured. */                                                   \
  X(double, eps_greedy, 0.05, 0, 1,                                                               \
    "share of a round that is chosen by chance",                                                  \
    "as in TVM v0.14 (auto_scheduler/search_policy.py)")                                          \
  X(double, prior_eps_greedy, 0.25, 0, 1,                                                         \
    "the same while the analytic model ranks: a model learns from contrast",                      \
    "chosen by Kiln: untested")                                                                   \
  X(int, prior_round, 2, 0, 1e6,                                                                  \
    "the round that a model trained on other tasks leaves to the analytic one",                   \
    "chosen by Kiln: untested")                                                                   \
  X(int, known_task_results, 64, 0, 1e9,                                                          \
    "results of the task itself that make prior_round needless",                                  \
    "chosen by Kiln: untested")                                                                   \
  X(int, well_known_task_results, 256, 0, 1e9,                                                    \
    "results of the task until which every other round is ranked by the mean of both "            \
    "models",                                                                                     \
    "docs/experiments/search.md: five tasks on an H200, 300 trials, two and three seeds")         \
  X(int, full_round, 16, 1, 1e6,                                                                  \
    "a round of fewer candidates looks at fewer states, in proportion",                           \
    "chosen by Kiln: untested")                                                                   \
  X(double, least_round_share, 0.125, 1e-3, 1,                                                    \
    "the least of that proportion",                                                               \
    "chosen by Kiln: untested")                                                                   \
  X(int, slots_per_state, 16, 1, 1e6,                                                             \
    "slots of a generation for each state known, in a space of which no more can be "             \
    "drawn",                                                                                      \
    "chosen by Kiln: untested")                                                                   \
  X(double, neighbour_share, 0.3, 0, 1,                                                           \
    "share of a round that is one change away from one of the best measured states, "             \
    "whatever the model says",                                                                    \
    "docs/search.md: matmul 2048 on an H200, 1,000 trials, two seeds with each of 0.15, "         \
    "0.3 and 0.5")                                                                                \
  X(double, neighbours_from_results_gpu, 200, 1, 1e9,                                             \
    "GPU: results from which on neighbour_share is the full share; before that less, "            \
    "in proportion",                                                                              \
    "docs/experiments/search.md: fewer near elites in early rounds are better; the number "       \
    "was chosen by Kiln: untested")                                                               \
  X(double, neighbours_from_results_cpu, 32, 1, 1e9,                                              \
    "CPU: results from which on neighbour_share is the full share",                               \
    "chosen by Kiln: untested")                                                                   \
  X(int, probed_elites, 12, 1, 1e6,                                                               \
    "block shapes whose best state is changed so",                                                \
    "chosen by Kiln: untested")                                                                   \
  X(int, probed_per_sketch, 5, 1, 1e6,                                                            \
    "the same: of one sketch at most",                                                            \
    "chosen by Kiln: untested")                                                                   \
  X(double, probed_within, 1.15, 1, 1e6,                                                          \
    "the same: none slower than the best by this factor",                                         \
    "docs/search.md: what a compiler makes of a shape is worth 10%; the number was chosen "       \
    "by Kiln: untested")                                                                          \
  X(double, probe_tiles_prob, 0.4, 0, 1,                                                          \
    "such a change is one of tiles; else of any kind, all alike",                                 \
    "chosen by Kiln: untested")                                                                   \
  X(double, transferred_share_of_first_round, 0.5, 0, 1,                                          \
    "share of a task's first round that another task with the same sums found to be fast, "       \
    "if there are so many",                                                                       \
    "chosen by Kiln: untested")                                                                   \
  X(double, transferred_share, 0.125, 0, 1,                                                       \
    "the same of its other rounds",                                                               \
    "chosen by Kiln: untested")                                                                   \
  X(int, tries_per_neighbour, 16, 1, 1e6,                                                         \
    "changes that are tried for one neighbour",                                                   \
    "chosen by Kiln: untested")                                                                   \
  X(int, max_same_tiles, 2, 1, 1e9,                                                               \
    "candidates with equal tile lengths everywhere, or with rows that are equal to "              \
    "the last bit",                                                                               \
    "chosen by Kiln: untested")                                                                   \
  X(int, max_same_tile_shapes, 6, 1, 1e9,                                                         \
    "candidates with tiles that are equal but for the order of unrolled loops",                   \
    "chosen by Kiln: untested")                                                                   \
  X(double, max_same_outer_tiles, 0.125, 0, 1,                                                    \
    "share of a round with equal outermost tiles",                                                \
    "chosen by Kiln: untested")                                                                   \
  X(double, least_sketch_share, 0.06, 0, 1,                                                       \
    "share of a round for each sketch; less for one that has proved slow",                        \
    "chosen by Kiln: untested")                                                                   \
  X(int, sketch_judged_trials_gpu, 10, 1, 1e9,                                                    \
    "GPU: trials of a sketch from which on its best time says what it is worth; there "           \
    "are twice the sketches of a CPU",                                                            \
    "docs/experiments/search.md: five tasks on an H200, 300 trials; 24 before")                   \
  X(int, sketch_judged_trials_cpu, 24, 1, 1e9,                                                    \
    "CPU: the same; the model ranks its sketches worse",                                          \
    "chosen by Kiln: untested")                                                                   \
  X(int, sketch_limited_trials, 48, 1, 1e9,                                                       \
    "trials from which on a slow sketch has an upper limit too: models may take long "            \
    "to believe it",                                                                              \
    "chosen by Kiln: untested")                                                                   \
  X(double, slow_sketch_speed, 0.95, 1e-3, 1,                                                     \
    "sketches below this speed, the best of all being 1, are slow",                               \
    "chosen by Kiln: untested")                                                                   \
  X(double, slow_sketch_share, 0.25, 0, 1,                                                        \
    "share of a round that a slow sketch gets at most",                                           \
    "chosen by Kiln: untested")                                                                   \
  /* The heuristic policy, which measures nothing. */                                             \
  X(int, rule_register_tiles, 8, 1, 1000,                                                         \
    "CPU, heuristic: register tiles of a stage, the most efficient ones, that are tried",         \
    "chosen by Kiln: untested")                                                                   \
  X(int, rule_fillings, 24, 0, 1e6,                                                               \
    "CPU, heuristic: states of a sketch whose tiles are chosen by rule",                          \
    "chosen by Kiln: untested")                                                                   \
  X(int, heuristic_draws, 48, 1, 1e6,                                                             \
    "heuristic: states that are drawn by chance beside those of a rule",                          \
    "chosen by Kiln: untested")                                                                   \
  X(int, heuristic_population, 64, 1, 1e6,                                                        \
    "heuristic: states of a generation that changes the best of these",                           \
    "chosen by Kiln: untested")                                                                   \
  X(int, heuristic_generations, 2, 0, 1e3,                                                        \
    "heuristic: generations",                                                                     \
    "chosen by Kiln: untested")                                                                   \
  X(int, heuristic_stages, 14, 1, 1e6,                                                            \
    "GPU, heuristic: stages of the sketches on average; of more, states are fewer in proportion", \
    "docs/heuristic-schedules.md: as many as Winograd's convolutions have, which take long "      \
    "to describe")                                                                                \
  /* Policies template.*. */                                                                      \
  X(int, template_population, 100, 2, 1e6,                                                        \
    "template.genetic: points of a generation",                                                   \
    "as in TVM v0.14 (autotvm/tuner/ga_tuner.py)")                                                \
  X(int, template_plan_size, 64, 1, 1e6,                                                          \
    "template.xgb: results between two trainings of its model, and points that are "              \
    "planned by it",                                                                              \
    "as in TVM v0.14 (autotvm/tuner/xgboost_tuner.py)")                                           \
  X(bool, template_rank_loss, false, 0, 1,                                                        \
    "template.xgb: the model learns which of two points is faster; else the throughput",          \
    "as in TVM v0.14 (autotvm/tuner/xgboost_tuner.py, loss_type reg)")                            \
  X(bool, template_itervar_features, false, 0, 1,                                                 \
    "template.xgb: the model sees the loops of a point's program beside the values of its "       \
    "knobs, which takes far more time",                                                           \
    "chosen by Kiln: untested; TVM v0.14 sees loops (autotvm/tuner/xgboost_tuner.py, "            \
    "feature_type itervar)")                                                                      \
  X(bool, template_curve_features, false, 0, 1,                                                   \
    "template.xgb: the model sees how the loops of a point's program reuse memory, sampled "      \
    "from curves, beside the values of its knobs; takes as long",                                 \
    "docs/search.md compares curves, loops and neither; the default was chosen for the "          \
    "time it takes")                                                                              \
  X(bool, template_history, true, 0, 1,                                                           \
    "template.xgb with template_itervar_features or template_curve_features: the search begins "  \
    "with a model of what earlier jobs measured of the template, for any computation",            \
    "docs/search.md: a made-up machine, five seeds, with and without what others measured")       \
  X(int, template_least_history, 64, 1, 1e6,                                                      \
    "the least results for that model",                                                           \
    "chosen by Kiln: untested; TVM v0.14 has 500 (autotvm's load_history)")                       \
  X(double, template_diversity, 0, 0, 100,                                                        \
    "template.xgb: above 1, so many times as many points are looked for, of which those are "     \
    "planned that have the most different values",                                                \
    "as in TVM v0.14 (autotvm/tuner/xgboost_tuner.py, diversity_filter_ratio)")
// clang-format on

struct Parameters {
#define KILN_MEMBER(type, name, value, least, most, what, source) type name = value;
  KILN_SEARCH_PARAMETERS(KILN_MEMBER)
#undef KILN_MEMBER
  // Tile letters from outermost to innermost: S splits every spatial axis, R every reduction axis.
  // On a GPU blocks, vthreads, threads, ... Not to be set by name.
  std::string cpu_tiling = "SSRSRS";
  std::string gpu_tiling = "SSSRRSRS";
  // By name it is disable_change_compute_location, as in TVM's auto_scheduler.
  bool change_compute_location = true;
  // By ir::Hint: is it drawn, where a search has a use for it? HintChoice names the parameters.
  std::array<bool, ir::kNumHints> hints = [] {
    std::array<bool, ir::kNumHints> all;
    all.fill(true);
    return all;
  }();
};

// For people: a row of the table, or of one that is derived.
struct ParameterInfo {
  std::string_view name;
  double value, least, most;  // value: the default
  std::string what;
  std::string_view source;
};

// All that can be set by name, in the order of the table; hints are last.
std::vector<ParameterInfo> ParameterInfos();

// The same as the table of docs/search-parameters.md.
std::string ParameterTable();

// "max_vectorize_size" -> 32, ... Unknown names: error with the list of known ones.
StatusOr<Parameters> MakeParameters(const std::map<std::string, double>& overrides);

}  // namespace kiln::search
