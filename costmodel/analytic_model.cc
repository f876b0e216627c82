#include "costmodel/analytic_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::costmodel {
namespace {

// clang-format off
#define KILN_ANALYTIC_COLUMNS(X) \
  X(is_gpu) X(unroll_prod) X(auto_unroll_max_step) X(row_work) X(row_thread_trips) \
  X(row_thread_flops) X(row_thread_instructions) X(row_thread_special) \
  X(row_thread_accesses) X(row_body) X(row_chains) X(row_reduce_len) \
  X(row_serial_trips) X(row_lanes) X(row_vector_bytes) X(row_register_share) \
  X(row_miss_32k) X(row_miss_1m) X(row_miss_32m) X(kernel_index) X(kernel_blocks) \
  X(kernel_threads) X(kernel_blocks_per_core) X(kernel_thread_instructions) \
  X(kernel_thread_special) X(kernel_thread_shared_wavefronts) \
  X(kernel_thread_global_requests) X(kernel_thread_sectors) X(kernel_barriers) \
  X(kernel_stages) X(kernel_stage_loads) X(kernel_unique_bytes) \
  X(kernel_global_bytes) X(kernel_parallel_tasks) X(program_cores) \
  X(program_vector_bytes) X(kernel_cluster_cores) X(kernel_cluster_barriers) \
  X(kernel_thread_remote_bytes) X(kernel_spilled) X(row_async) X(row_global_read_bytes) \
  X(row_flops) X(kernel_copies_ahead) X(kernel_wave_share) X(kernel_shared_bytes)
// clang-format on

#define KILN_COLUMN(name) k_##name,
enum Column : int { KILN_ANALYTIC_COLUMNS(KILN_COLUMN) kNumColumns };
#undef KILN_COLUMN
#define KILN_NAME(name) #name,
constexpr std::string_view kNames[] = {KILN_ANALYTIC_COLUMNS(KILN_NAME)};
#undef KILN_NAME

// Cache sizes of the columns miss_1m and miss_32m.
constexpr double kL2Bytes = 1 << 20, kL3Bytes = 32 << 20;

// Asynchronous copies of threads reach these multiples of the rates at which threads load from the
// L2 cache and within a multiprocessor (docs/cost-models.md).
constexpr double kAsyncL2Rate = 2.6, kAsyncRate = 2;
// The bulk copy engine reaches these multiples of the rates at which threads load from the L2 cache
// and within a multiprocessor. If tiles are filled ahead, this share of the latencies of a tile and
// its barriers is left. The figures come from 1,200 kernels of matrix units that were measured on
// an H200 (docs/cost-models.md).
constexpr double kBulkL2Rate = 8, kBulkRate = 3, kBulkLatency = 0.05;
// From this value of the column async on, tiles come in bulk. The values of an online softmax by
// units of four warps are higher by a number.
constexpr double kBulkCopies = 2, kOnline = 4;
bool IsOnline(double async) { return async > kOnline; }
bool IsAsync(double async) { return async > 0.5 && async < kBulkCopies; }
bool IsBulk(double async) { return (IsOnline(async) ? async - kOnline : async) >= kBulkCopies; }
// Wavefronts of a warp's request to shared memory with 16 bytes for each thread.
constexpr double kCopyWavefronts = 4;

// Seconds for which a device starts one block after the other, however few threads these have. The
// figure is that of empty kernels of 1,056 to 35,840 blocks of 32 to 256 threads on an H200.
constexpr double kBlockStart = 0.605e-9;

// An online softmax by units of four warps. The figures come from 91 kernels of five attentions
// that were measured on an H200 (docs/experiments/matrix-units.md).
//
// Cycles from the first instruction of a block to its first product, and from the last product to
// the stored result. Other blocks of the multiprocessor hide them.
constexpr double kOnlineStart = 6000;
// Cycles of a group of four warps for the exponential of each thread, beside the products of the
// other groups. All groups together take four times as many at most.
constexpr double kOnlineExponential = 2;
// Cycles for which a group waits at each tile that comes in bulk: a lone one of its block, and one
// of several that take turns. The latter take this share of the instructions' time, because one
// multiplies while another one computes.
constexpr double kOnlineWait = 140, kTurnWait = 200, kTurnShare = 0.93;
// A group that has a multiprocessor to itself takes so much longer, because nothing is multiplied
// while it computes exponentials.
constexpr double kLoneGroup = 1.3;
// If rows see less than this share of the keys, a mask hides the others, and blocks have different
// numbers of tiles. The longest blocks come first.
constexpr double kMaskedShare = 0.75;

// A product by units of four warps whose tiles come in bulk. The figures come from 49 kernels of a
// convolution, a dense layer and a gated product that were measured on an H200
// (docs/experiments/matrix-units.md). Cycles are those of the clock of the calibration.
//
// Products, times the bytes of an element, that the units add up in a cycle. Features count them by
// their share of a multiply-add in float32: 0.84 / 16 for elements of two bytes
// (compiler/features/op_counts.h).
constexpr double kUnitRate = 3500, kOfFlops = 16 / 0.84;
// Bytes of shared memory that are written and read in a cycle.
constexpr double kTileRate = 145;
// Bytes of tiles that the L2 cache and memory give to all multiprocessors in a cycle, and the most
// that one of them gets.
constexpr double kTilesL2Rate = 7000, kTilesMemoryRate = 6600, kMostTileRate = 75;
// Cycles of the copy engine for a piece of a row.
constexpr double kPieceCycles = 1.7;
// The units read rows of the first factor as fast as lines of so many bytes.
constexpr double kLine = 128;
// Cycles between the start of a copy and its first bytes, from the L2 cache and from memory. Data
// of more bytes than kCached come from memory.
constexpr double kL2Latency = 700, kMemoryLatency = 1150, kCached = 45e6;
// Cycles from the first instruction of a block to its first product, and from the last product to
// the end of the block, beside the instructions for its results.
constexpr double kProductStart = 1800;
// Pairs of blocks wait for each other. Rows of a window come to the units through registers.
constexpr double kPair = 1.03, kThroughRegisters = 1.35, kOftener = 1.1;
// Bytes that a block reads or writes in a cycle to exchange parts of sums through memory.
constexpr double kPartRate = 20;
// If registers are missing, all sums leave theirs in each iteration.
constexpr double kMissingRegisters = 8, kMostSlower = 4;

// A sum that reads each byte once from memory, as those of columns. The figures come from 291
// kernels of a mean and a variance that were measured on an H200
// (docs/experiments/matrix-units.md).
//
// Bytes that memory gives to all multiprocessors in a cycle, and cycles of a thread for a byte.
// Kernels count that move at most so many times their data.
constexpr double kMemoryRate = 2500, kReadLatency = 18, kReadOnce = 1.25;

// Reads values by name, and undoes the scaling of the columns.
class Row {
 public:
  Row(std::span<const float> row, const std::vector<int>& columns) : row_(row), columns_(columns) {}
  double raw(Column c) const { return row_[static_cast<size_t>(columns_[c])]; }
  double operator[](Column c) const { return std::exp2(raw(c)) - 1; }

 private:
  std::span<const float> row_;
  const std::vector<int>& columns_;
};

}  // namespace

StatusOr<std::unique_ptr<AnalyticModel>> AnalyticModel::Make(
    std::span<const std::string_view> columns, const device::Calibration& device) {
  auto model = std::unique_ptr<AnalyticModel>(new AnalyticModel(device));
  model->num_columns_ = static_cast<int>(columns.size());
  for (std::string_view name : kNames) {
    const auto it = std::find(columns.begin(), columns.end(), name);
    if (it == columns.end())
      return InvalidArgument(
          "the analytic model needs a column '{}', which is not among {} columns", name,
          columns.size());
    model->column_.push_back(static_cast<int>(it - columns.begin()));
  }
  return model;
}

std::span<const std::string_view> AnalyticModel::Columns() { return kNames; }

Status AnalyticModel::Load(std::string_view bytes) {
  if (bytes == name()) return OkStatus();
  return InvalidArgument("{} bytes are no saved analytic model", bytes.size());
}

// The work that threads would have to copy the tiles that come in bulk.
struct AnalyticModel::BulkCopies {
  double bytes = 0;                       // bytes that all blocks copy
  double instructions = 0, accesses = 0;  // work of one thread
};

AnalyticModel::BulkCopies AnalyticModel::BulkCopiesOf(const FloatMatrix& rows, int begin,
                                                      int end) const {
  BulkCopies copies;
  for (int r = begin; r < end; ++r) {
    const Row row(rows.row(r), column_);
    if (!IsBulk(row.raw(k_row_async))) continue;
    copies.bytes += row[k_row_global_read_bytes];
    copies.instructions += row[k_row_thread_instructions];
    copies.accesses += row[k_row_thread_accesses];
  }
  return copies;
}

struct AnalyticModel::ProductWork {
  double tiles = 0, iterations = 0, cores = 1, resident = 1, launched = 0;
  double ahead = 1, shared_bytes = 0;  // iterations of copies ahead, and room for all buffers
  bool is_streamed = false, has_pairs = false, is_cached = true;
  // Sums over all blocks: bytes of the first factor's tiles and of the others', pieces of rows,
  // products times the bytes of an element.
  double first_bytes = 0, other_bytes = 0, pieces = 0, products = 0;
  double results = 1, sums = 1;  // of a tile, and arrays of them
  double narrow = 1;             // lines of 128 bytes for those of a row of the first factor
  // Cycles of a tile beside the products: instructions for the results, and exchange of parts of
  // sums.
  double rest = 0, exchange = 0;
  double slower = 1;  // because of missing registers
};

double AnalyticModel::ProductCycles(const ProductWork& w) {
  const double all = std::max(1.0, w.tiles * w.iterations);
  const double bytes = (w.first_bytes + w.other_bytes) / all;
  const double units = w.products / all / kUnitRate * w.slower;
  // The units read all columns for each 64 rows. Elements of a window are read more often than they
  // are copied.
  const double rows = w.products / std::max(1.0, w.other_bytes);
  const double read = w.sums * rows * rows * w.other_bytes / w.results;
  const bool is_window = read > kOftener * w.sums * w.first_bytes;
  // Narrow rows lie in lines with others, which the units read besides.
  const double lines = is_window ? 1 : w.narrow;
  const double of_first = lines * (w.first_bytes + std::max(w.sums * w.first_bytes, read));
  const double shared = (of_first + w.other_bytes + w.products / 64) / all / kTileRate;
  const double rate = std::min(
      kMostTileRate, (w.is_cached ? kTilesL2Rate : kTilesMemoryRate) / std::min(w.tiles, w.cores));
  const double engine = std::max(w.pieces / all * kPieceCycles, bytes / rate);
  const double iteration = std::max({units, shared, engine}) * (w.has_pairs ? kPair : 1) *
                           (is_window ? kThroughRegisters : 1);
  // One buffer waits for the products that read it, and the others are filled meanwhile.
  const double latency = (w.is_cached ? kL2Latency : kMemoryLatency) + bytes / rate;
  const double buffers = std::min(w.ahead + 2, std::floor(w.shared_bytes / bytes));
  const double filled = (latency + iteration) / std::max(1.4, buffers - 1);
  const auto cycles_of = [&](double together) { return std::max(iteration, filled / together); };
  if (w.is_streamed) {
    const double together = std::clamp(w.launched / w.cores, 1.0, w.resident);
    // A block ends with the parts of the others that have begun its sum.
    const double parts = std::ceil(w.launched / w.tiles);
    return all / w.cores * cycles_of(together) + kProductStart +
           (1 + w.tiles / w.launched) * w.rest + (1 + parts) * w.exchange;
  }
  const bool is_persistent = w.launched < w.tiles;
  const double resident =
      is_persistent ? std::clamp(std::floor(w.launched / w.cores), 1.0, w.resident) : w.resident;
  double cycles = 0, rounds = 0;
  for (double left = std::ceil(w.tiles / w.cores); left > 0; ++rounds) {
    const double together = std::min(left, resident);
    cycles += together * w.iterations * cycles_of(together);
    left -= together;
  }
  return cycles + rounds * w.rest + (is_persistent ? 1 : rounds) * kProductStart + w.exchange;
}

AnalyticModel::ProductWork AnalyticModel::ProductOf(const FloatMatrix& rows, int begin,
                                                    int end) const {
  const device::Calibration& d = device_;
  const Row kernel(rows.row(begin), column_);
  ProductWork work{.tiles = std::round(kernel[k_kernel_parallel_tasks]),
                   .iterations = std::round(kernel[k_kernel_barriers]),
                   .cores = std::max(1.0, std::round(kernel[k_kernel_cluster_cores])),
                   .resident = std::max(1.0, std::round(kernel[k_kernel_blocks_per_core])),
                   .launched = std::max(1.0, std::round(kernel[k_kernel_blocks])),
                   .ahead = std::round(kernel[k_kernel_copies_ahead]),
                   .shared_bytes = kernel[k_kernel_shared_bytes] + 1};
  double most = 0, results = 0, sums = 0, of_thread = 0;
  for (int r = begin; r < end; ++r) most = std::max(most, Row(rows.row(r), column_)[k_row_flops]);
  bool is_first = true;
  for (int r = begin; r < end; ++r) {
    const Row row(rows.row(r), column_);
    if (IsBulk(row.raw(k_row_async))) {
      const double bytes = row[k_row_global_read_bytes];
      if (is_first) work.narrow = std::max(1.0, kLine / std::max(16.0, row[k_row_vector_bytes]));
      work.has_pairs |= row.raw(k_row_async) > kBulkCopies;
      (is_first ? work.first_bytes : work.other_bytes) += bytes;
      work.pieces += bytes / std::max(16.0, row[k_row_vector_bytes]);
      of_thread += row[k_row_thread_instructions];
      is_first = false;
      continue;
    }
    is_first = true;
    if (row[k_row_reduce_len] <= 1 || row[k_row_flops] < most / 4) continue;
    work.products += row[k_row_flops] * kOfFlops;
    of_thread += row[k_row_thread_instructions];
    results += row[k_row_thread_trips] / row[k_row_reduce_len];
    ++sums;
  }
  const double threads = kernel[k_kernel_threads];
  work.results = std::max(1.0, results * threads);
  work.sums = std::max(1.0, sums);
  const double spilled = kernel[k_kernel_spilled];
  work.slower = std::min(kMostSlower, 1 + spilled / kMissingRegisters);
  work.is_cached = kernel[k_kernel_unique_bytes] < kCached;
  work.rest = std::max(0.0, kernel[k_kernel_thread_instructions] - of_thread) * threads / 128 *
                  d.issue_cycles +
              kernel[k_kernel_thread_special] * threads / 16;
  // Streamed sums give all blocks as much work, though they are not as many tiles.
  work.is_streamed = kernel.raw(k_kernel_wave_share) == 1 &&
                     (work.launched > work.tiles || std::fmod(work.tiles, work.launched) != 0);
  work.exchange = work.is_streamed
                      ? 4 * work.results / kPartRate
                      : kernel[k_kernel_thread_remote_bytes] * threads / d.remote_bytes_per_cycle +
                            kernel[k_kernel_cluster_barriers] * d.cluster_barrier_latency;
  return work;
}

struct AnalyticModel::OnlineWork {
  double blocks = 0, cores = 1, resident = 1;
  double groups = 1;  // groups of four warps in a block
  // Work of a thread.
  double instructions = 0, special = 0, barriers = 0;
  // The share of all tiles that an average block visits.
  double seen = 1;
  double bulk_bytes = 0, other_bytes = 0;
};

double AnalyticModel::OnlineCycles(const OnlineWork& work) const {
  const device::Calibration& d = device_;
  const bool is_masked = work.seen < kMaskedShare, is_bulk = work.bulk_bytes > 0;
  // All groups meet at the barriers of copies by threads.
  const bool is_one = work.groups <= 1;
  const double of_threads = is_one ? d.barrier_latency : d.barrier_latency + d.stage_latency;
  const double wait = !is_bulk ? of_threads : is_one ? kOnlineWait : kTurnWait;
  const double share = is_bulk && !is_one ? kTurnShare : 1;
  const double of_group = work.instructions * d.issue_cycles * share +
                          work.special * kOnlineExponential + work.barriers * work.seen * wait;
  const double all = is_masked ? work.blocks / work.cores : std::ceil(work.blocks / work.cores);
  const double together = std::clamp(all, 1.0, work.resident);
  const double alone = work.groups * of_group * (is_one ? kLoneGroup : 1);
  const double of_block = std::ceil(together) * work.groups <= 1 ? alone : work.groups * of_group;
  const double longest = alone / (is_masked ? work.seen : 1) + kOnlineStart;
  const double from_l2 = work.bulk_bytes / kBulkL2Rate + work.other_bytes / kAsyncL2Rate;
  const double starts = std::ceil(all) / together * kOnlineStart;
  return std::max({all * of_block + starts, longest, from_l2 / d.l2_bytes_per_cycle});
}

void AnalyticModel::GpuKernel(const FloatMatrix& rows, int begin, int end,
                              std::span<double> seconds) const {
  const device::Calibration& d = device_;
  const Row kernel(rows.row(begin), column_);
  const double cores = std::max(1.0, kernel[k_kernel_cluster_cores]);
  // Persistent blocks compute more tiles, one after the other, than there are blocks.
  const double blocks = std::max(kernel[k_kernel_blocks], kernel[k_kernel_parallel_tasks]);
  const double warps = std::ceil(kernel[k_kernel_threads] / 32);
  const double resident = std::max(1.0, kernel[k_kernel_blocks_per_core]);

  // The values of one thread. A copy has a load, and a store of a wavefront of 16 bytes in each
  // thread.
  const BulkCopies bulk = BulkCopiesOf(rows, begin, end);
  const auto without = [](double all, double of_bulk) { return std::max(0.0, all - of_bulk); };
  const double spilled = kernel[k_kernel_spilled];
  const double instructions = without(kernel[k_kernel_thread_instructions], bulk.instructions) *
                              (1 + spilled / (1 + spilled / d.spilled_most) / d.spilled_doubling);
  const double wavefronts =
      without(kernel[k_kernel_thread_shared_wavefronts], bulk.accesses / 2 * kCopyWavefronts);
  const double requests = without(kernel[k_kernel_thread_global_requests], bulk.accesses / 2);
  const double sectors = without(kernel[k_kernel_thread_sectors],
                                 bulk.bytes / (blocks * std::max(1.0, kernel[k_kernel_threads])));
  const double latency = bulk.bytes > 0 ? kBulkLatency : 1;
  double sums = 0;  // time of dependent sums
  double async_bytes = 0;
  double seen = 0, of_all = 0;
  bool is_online = false;
  for (int r = begin; r < end; ++r) {
    const Row row(rows.row(r), column_);
    is_online |= IsOnline(row.raw(k_row_async));
    if (IsAsync(row.raw(k_row_async))) async_bytes += row[k_row_global_read_bytes];
    if (row[k_row_reduce_len] <= 1) continue;
    seen += row[k_row_thread_instructions];
    of_all += row[k_row_thread_instructions] / std::max(1e-3, row.raw(k_row_work));
    const double runs = row[k_row_thread_trips] * row.raw(k_row_work);
    sums += runs * d.fma_latency / std::max(1.0, row[k_row_chains]);
  }
  // Sectors of a thread, of which those of asynchronous copies take less time.
  const double threads = std::max(1.0, kernel[k_kernel_threads]);
  const double copied = std::min(sectors, async_bytes / (blocks * threads));
  const double loaded = sectors - copied * (1 - 1 / kAsyncRate);
  const double moved = kernel[k_kernel_global_bytes], data = kernel[k_kernel_unique_bytes];
  const bool is_read_once = of_all > 0 && bulk.bytes == 0 && async_bytes == 0 && data > kCached &&
                            moved < kReadOnce * data && kernel[k_kernel_stages] < 1.5;
  const double reads = is_read_once ? moved / (blocks * threads) * kReadLatency : 0;
  const double alone = std::max({instructions * d.instruction_latency +
                                     wavefronts * d.shared_latency + requests * d.request_latency,
                                 sums, reads});

  // Cycles for which blocks keep the units of a multiprocessor busy. Each of its four schedulers
  // issues for whole warps.
  const double others =
      warps * (kernel[k_kernel_thread_special] * 2 +
               32 * kernel[k_kernel_thread_remote_bytes] / d.remote_bytes_per_cycle);
  const auto busy = [&](double num_blocks) {
    const double issue = std::ceil(num_blocks * warps / 4) * instructions * d.issue_cycles;
    const double shared = num_blocks * warps * wavefronts * d.wavefront_cycles;
    const double l1 =
        num_blocks * (warps * loaded * 32 + bulk.bytes / blocks / kBulkRate) / d.l1_bytes_per_cycle;
    return std::max({issue, shared, l1}) + num_blocks * others;
  };

  const double exposed = std::max(1.0, latency * kernel[k_kernel_stages]) * d.stage_latency +
                         latency * kernel[k_kernel_barriers] * d.barrier_latency +
                         kernel[k_kernel_cluster_barriers] * d.cluster_barrier_latency;
  // Blocks of the busiest multiprocessor.
  const double all = std::ceil(blocks / cores);
  const double together = std::min(all, resident);
  const double rounds = std::ceil(all / resident);
  const double one = std::max(alone, busy(1)) + exposed;
  double cycles = std::max(one, busy(together) + exposed / together);
  if (rounds > 1) cycles = std::max(one, busy(all)) + (one - busy(1)) * (rounds - 1) / resident;
  cycles = std::max(cycles, kernel[k_kernel_blocks] * kBlockStart * d.clock_hz + one);
  const double from_l2 = without(moved, bulk.bytes + async_bytes) + bulk.bytes / kBulkL2Rate +
                         async_bytes / kAsyncL2Rate;
  cycles = std::max(cycles, from_l2 / (is_read_once ? kMemoryRate : d.l2_bytes_per_cycle));
  if (is_online) {
    // The columns are in single precision.
    cycles = OnlineCycles({.blocks = std::round(blocks),
                           .cores = std::round(cores),
                           .resident = std::round(resident),
                           .groups = std::round(kernel[k_kernel_threads]) / 128,
                           .instructions = instructions,
                           .special = kernel[k_kernel_thread_special],
                           .barriers = kernel[k_kernel_barriers],
                           .seen = of_all > 0 ? seen / of_all : 1,
                           .bulk_bytes = bulk.bytes,
                           .other_bytes = without(moved, bulk.bytes)});
  }
  if (bulk.bytes > 0 && !is_online) {
    const ProductWork work = ProductOf(rows, begin, end);
    if (work.products > 0 && work.other_bytes > 0) cycles = ProductCycles(work);
  }
  const double time = cycles / d.clock_hz + d.launch_s;

  // Shares the time out to the rows.
  double total = 0;
  for (int r = begin; r < end; ++r) {
    seconds[r] = 1 + Row(rows.row(r), column_)[k_row_thread_instructions];
    total += seconds[r];
  }
  for (int r = begin; r < end; ++r) seconds[r] *= time / total;
}

void AnalyticModel::CpuKernel(const FloatMatrix& rows, int begin, int end,
                              std::span<double> seconds) const {
  const device::Calibration& d = device_;
  const Row kernel(rows.row(begin), column_);
  const double cores = kernel[k_program_cores];
  const double tasks = std::max(1.0, kernel[k_kernel_parallel_tasks]);
  const double speedup = tasks / std::ceil(tasks / cores);
  // The data of a kernel stay in the caches from one run to the next, as far as they fit.
  const double footprint = kernel[k_kernel_unique_bytes];
  const bool in_l2 = footprint <= kL2Bytes * cores, in_l3 = footprint <= kL3Bytes;
  for (int r = begin; r < end; ++r) {
    const Row row(rows.row(r), column_);
    const double runs = row[k_row_thread_trips] * row.raw(k_row_work);
    const double lanes = std::max(1.0, row[k_row_lanes]);
    // The columns are in single precision, so a rounding error is subtracted.
    const double registers =
        std::ceil(row[k_row_vector_bytes] / kernel[k_program_vector_bytes] - 1e-3);
    const double vector = std::max(1.0, lanes / std::max(1.0, registers));
    double accesses = row[k_row_thread_accesses];
    // Values that do not fit into registers are loaded and stored around every instruction.
    if (row.raw(k_row_register_share) > 1) accesses += 2 * runs / vector;
    const double compute = row[k_row_thread_instructions] / d.cpu_instructions_per_cycle;
    const double memory = accesses / d.cpu_accesses_per_cycle;
    double latency = 0;
    if (row[k_row_reduce_len] > 1) {
      const double chains = std::max(1.0, row[k_row_chains] / vector);
      latency = runs / vector * d.cpu_fma_latency / chains;
    }
    const double missed = row[k_row_miss_32k] / 64 * d.line_cycles_l2 +
                          (in_l2 ? 0 : row[k_row_miss_1m] / 64 * d.line_cycles_l3) +
                          (in_l3 ? 0 : row[k_row_miss_32m] / 64 * d.line_cycles_memory);
    const double special = row[k_row_thread_special] / vector * d.cpu_special_cycles;
    const double cycles = std::max({compute, memory, latency}) + missed + special;
    seconds[r] = cycles / d.cpu_clock_hz / speedup;
  }
  if (tasks > 1) seconds[begin] += d.fork_s;
}

std::vector<double> AnalyticModel::PredictRows(const FloatMatrix& program) const {
  std::vector<double> seconds(program.rows());
  if (program.rows() == 0) return seconds;
  KILN_CHECK(program.columns() == num_columns_, "{} columns, expected {}", program.columns(),
             num_columns_);
  for (int begin = 0, end; begin < program.rows(); begin = end) {
    const Row first(program.row(begin), column_);
    for (end = begin + 1; end < program.rows(); ++end) {
      if (Row(program.row(end), column_).raw(k_kernel_index) != first.raw(k_kernel_index)) break;
    }
    if (first.raw(k_is_gpu) != 0) {
      GpuKernel(program, begin, end, seconds);
    } else {
      CpuKernel(program, begin, end, seconds);
    }
  }
  for (double& s : seconds) s = -s;
  return seconds;
}

std::vector<double> AnalyticModel::Predict(std::span<const FloatMatrix* const> programs) const {
  std::vector<double> scores;
  scores.reserve(programs.size());
  for (const FloatMatrix* program : programs) {
    if (program->rows() == 0) {
      scores.push_back(-std::numeric_limits<double>::infinity());
      continue;
    }
    double score = 0;
    for (double row : PredictRows(*program)) score += row;
    scores.push_back(score);
  }
  return scores;
}

}  // namespace kiln::costmodel
