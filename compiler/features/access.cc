#include "compiler/features/access.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/numbers/integers.h"
#include "compiler/ir/traverse.h"

namespace kiln::features {
namespace {

using ir::Expr;
using ir::LoopKind;

constexpr double kLineBytes = 64;
constexpr int64_t kSectorBytes = 32, kBanks = 32, kWordBytes = 4, kMaxGpuVectorBytes = 16;

// One tuple of indices.
struct Tuple {
  absl::InlinedVector<IndexValue, 6> dims;
  uint64_t loops = 0;
  // Values at points from IndexValues::base() on.
  const int64_t* flat = nullptr;
};

class Distinct {
 public:
  bool Insert(int64_t value) {
    for (int i = size_; i-- > 0;) {
      if (values_[i] == value) return false;
    }
    values_[size_++] = value;
    return true;
  }
  int size() const { return size_; }

 private:
  std::array<int64_t, 64> values_;
  int size_ = 0;
};

class Finder {
 public:
  Finder(const ir::Program& program, const Nest& nest, std::span<const Expr> loaded,
         int cpu_vector_bytes, uint32_t active, RewrittenIn rewritten_in, IndexValues& values)
      : program_(program),
        nest_(nest),
        loaded_(loaded),
        gpu_(cpu_vector_bytes == 0),
        cpu_vector_bytes_(cpu_vector_bytes),
        active_(active),
        rewritten_in_(rewritten_in),
        values_(values) {}

  std::vector<Access> Find(ir::Stmt store) {
    // A sum and two factors.
    constexpr size_t kUsual = 3;
    accesses_.reserve(kUsual);
    tuples_.reserve(kUsual);
    AddTuple(store->slot, store->indices(), /*write=*/true);
    ir::Visit(store->value(), [&](Expr e) {
      if (e->op != ir::Op::kLoad) return;
      const bool accumulates =
          e->id == store->slot && std::ranges::equal(e->args(), store->indices());
      if (accumulates) {
        accesses_[0].reads = true;
      } else if (std::ranges::find(loaded_, e) == loaded_.end()) {
        AddTuple(e->id, e->args(), /*write=*/false);
      }
    });
    for (size_t a = 0; a < accesses_.size(); ++a) Finish(accesses_[a], tuples_[a], store);
    return std::move(accesses_);
  }

 private:
  void AddTuple(int32_t slot, std::span<const Expr> indices, bool write) {
    size_t a = 0;
    while (a < accesses_.size() && accesses_[a].slot != slot) ++a;
    if (a == accesses_.size()) {
      accesses_.emplace_back();
      accesses_.back().slot = slot;
      tuples_.emplace_back();
    }
    Access& access = accesses_[a];
    (write ? access.writes : access.reads) = true;
    Tuple tuple;
    for (Expr index : indices) {
      tuple.dims.push_back(values_.Of(index));
      tuple.loops |= tuple.dims.back().loops;
    }
    tuple.flat = Flatten(slot, tuple);
    access.loops |= tuple.loops;
    tuples_[a].push_back(std::move(tuple));
  }

  const int64_t* Flatten(int32_t slot, const Tuple& tuple) {
    int64_t* flat = values_.Allocate();
    std::fill(flat + values_.base(), flat + values_.size(), 0);
    const std::vector<int64_t>& shape = program_.buffers[slot].shape;
    uint64_t stride = 1;
    for (size_t d = tuple.dims.size(); d-- > 0;) {
      for (int i = values_.base(); i < values_.size(); ++i) {
        flat[i] = static_cast<int64_t>(static_cast<uint64_t>(flat[i]) +
                                       stride * static_cast<uint64_t>(tuple.dims[d].at[i]));
      }
      stride *= static_cast<uint64_t>(shape[d]);
    }
    return flat;
  }

  void Finish(Access& access, const std::vector<Tuple>& tuples, ir::Stmt store) {
    const ir::Buffer& buffer = program_.buffers[access.slot];
    FindRegions(access, tuples, buffer);
    FindStrides(access, tuples);
    const int64_t element = buffer.type.bytes();
    const int rewritten_in = rewritten_in_(access.slot);
    for (const Tuple& tuple : tuples) {
      const int64_t width = VectorWidth(tuple, element);
      const double width_of_one = gpu_ ? static_cast<double>(width) : RegisterWidth(width, element);
      const double elements = BodyElements(tuple, rewritten_in);
      // An accumulator is both read and written.
      const bool both = access.reads && access.writes && &tuple == tuples.data();
      const double count =
          (both ? 2 : 1) * elements / width_of_one *
          TripsOutsideBody(tuple.loops, rewritten_in,
                           StaysInRegisters(Registers(tuple, elements, element), both));
      access.accesses += count;
      access.body_elements += elements;
      access.vector_bytes =
          std::max(access.vector_bytes, width_of_one * static_cast<double>(element));
      if (!gpu_ || values_.num_lanes() == 0) continue;
      if (buffer.scope == ir::Scope::kShared || buffer.scope == ir::Scope::kCluster) {
        access.thread_wavefronts += count * Wavefronts(tuple, element, width);
      } else if (buffer.scope != ir::Scope::kLocal) {
        access.thread_sectors += count * Sectors(tuple, element, width);
      }
    }
    if (rewritten_in < nest_.first_of_body)
      access.body_elements = std::min(access.body_elements, access.region[nest_.first_of_body]);
    if (access.accesses > 0) {
      access.sectors = access.thread_sectors / access.accesses;
      access.wavefronts = access.thread_wavefronts / access.accesses;
    }
    access.unrolled_run = UnrolledRun(access);
    if (gpu_ && buffer.scope == ir::Scope::kLocal) access.stack_trips = StackTrips(access, store);
  }

  // Sets the regions to the hull of all tuples, inside the buffer.
  void FindRegions(Access& access, const std::vector<Tuple>& tuples, const ir::Buffer& buffer) {
    const int levels = nest_.depth() + 1;
    access.region.assign(levels, 1);
    access.line_bytes.assign(levels, 0);
    const auto element = static_cast<double>(buffer.type.bytes());
    absl::InlinedVector<double, 24> runs_of(levels, 1);
    absl::InlinedVector<bool, 24> runs_on(levels, true);
    // Plain pointers are faster: an InlinedVector checks at each access which of its two places
    // holds the elements.
    double* const region_of = access.region.data();
    double* const run = runs_of.data();
    bool* const running = runs_on.data();
    for (size_t d = buffer.shape.size(); d-- > 0;) {
      const int64_t whole = buffer.shape[d];
      for (int level = 0; level < levels; ++level) {
        int64_t lo = whole - 1, hi = 0;
        for (const Tuple& tuple : tuples) {
          lo = std::min(lo, tuple.dims[d].at[values_.lo(level)]);
          hi = std::max(hi, tuple.dims[d].at[values_.hi(level)]);
        }
        lo = std::max<int64_t>(lo, 0);
        hi = std::min(hi, whole - 1);
        const auto extent = static_cast<double>(std::max<int64_t>(1, hi - lo + 1));
        region_of[level] *= extent;
        if (running[level]) run[level] *= extent;
        if (extent < static_cast<double>(whole)) running[level] = false;
      }
    }
    for (int level = 0; level < levels; ++level) {
      // A region with holes has no more elements than there are iterations.
      double iterations = static_cast<double>(tuples.size());
      for (int d = level; d < nest_.depth(); ++d) {
        if (access.depends_on(d)) iterations *= static_cast<double>(nest_.loops[d].extent);
      }
      const double region = std::min(access.region[level], iterations);
      const double runs = region / std::min(run[level], region);
      access.region[level] = region;
      access.line_bytes[level] =
          runs * std::ceil(std::min(run[level], region) * element / kLineBytes) * kLineBytes;
    }
  }

  void FindStrides(Access& access, const std::vector<Tuple>& tuples) {
    access.strides.assign(nest_.depth(), 0);
    for (int d = 0; d < nest_.depth(); ++d) {
      for (const Tuple& tuple : tuples) {
        const int64_t step = std::abs(tuple.flat[values_.step(d)] - tuple.flat[values_.base()]);
        if (step != 0 && (access.strides[d] == 0 || step < access.strides[d]))
          access.strides[d] = step;
      }
    }
  }

  static bool DependsOn(uint64_t loops, int d) { return (loops >> std::min(d, 63)) & 1; }

  // Returns the elements of each register of a CPU's vectorized loop, which may be as long as
  // several registers.
  double RegisterWidth(int64_t width, int64_t element) const {
    const int64_t most = std::max<int64_t>(1, cpu_vector_bytes_ / element);
    return static_cast<double>(width) / static_cast<double>(CeilDiv(width, most));
  }

  // Returns the elements of one instruction. For a CPU's vectorized loop these are all its
  // elements.
  int64_t VectorWidth(const Tuple& tuple, int64_t element) const {
    int64_t width = 1;
    for (int d = nest_.first_unrolled; d < nest_.depth(); ++d) {
      if (nest_.loops[d].kind != LoopKind::kVectorized) continue;
      const int64_t stride = tuple.flat[values_.step(d)] - tuple.flat[values_.base()];
      if (stride == 1) width = nest_.loops[d].extent;
      if (!gpu_ && stride > 1 && stride <= kMaxShuffledStride)
        width = std::max<int64_t>(1, nest_.loops[d].extent / stride);
    }
    if (!gpu_ || width == 1) return width;
    // Code generation takes the longest vectors that divide the loop and are aligned.
    const int64_t most = std::max<int64_t>(1, kMaxGpuVectorBytes / element);
    width = std::min(most, int64_t{1} << std::countr_zero(static_cast<uint64_t>(width)));
    for (int i = 0; i < values_.num_lanes(); ++i) {
      while (tuple.flat[values_.lane(i)] % width != 0) width /= 2;
    }
    return width;
  }

  double BodyElements(const Tuple& tuple, int rewritten_in) const {
    double elements = 1;
    for (int d = nest_.first_of_body; d < nest_.depth(); ++d) {
      if (d <= rewritten_in || DependsOn(tuple.loops, d))
        elements *= static_cast<double>(nest_.loops[d].extent);
    }
    return elements;
  }

  // Returns the number of a CPU's registers that hold so many elements. Registers are full if the
  // vectorized loop steps through the elements. Otherwise each element takes a register of copies.
  double Registers(const Tuple& tuple, double elements, int64_t element) const {
    double lanes = 1;
    for (int d = nest_.first_unrolled; d < nest_.depth(); ++d) {
      if (nest_.loops[d].kind == LoopKind::kVectorized && DependsOn(tuple.loops, d))
        lanes = RegisterWidth(nest_.loops[d].extent, element);
    }
    return elements / lanes;
  }

  // Returns true if so many vectors of one input can stay in a CPU's registers from one pass
  // through the body to the next. Sums may take all registers, and values that are only read half
  // of them.
  bool StaysInRegisters(double vectors, bool are_sums) const {
    if (gpu_) return true;
    const double registers = cpu_vector_bytes_ >= 64 ? 32 : 16;
    return vectors <= (are_sums ? registers : registers / 2);
  }

  // Counts a thread's passes through the body that access memory anew. A value that does not change
  // in the innermost loops stays in a register if it may.
  double TripsOutsideBody(uint64_t loops, int rewritten_in, bool stays) const {
    double trips = 1;
    bool reused = stays;
    for (int d = nest_.first_of_body; d-- > 0;) {
      const EnclosingLoop& loop = nest_.loops[d];
      if (IsBound(loop.kind)) {
        reused = false;
        continue;
      }
      if (d <= rewritten_in || DependsOn(loops, d)) reused = false;
      if (!reused) trips *= static_cast<double>(loop.extent);
    }
    return trips;
  }

  bool IsActive(int lane) const { return (active_ >> lane) & 1; }

  double Sectors(const Tuple& tuple, int64_t element, int64_t width) const {
    Distinct sectors;
    for (int i = 0; i < values_.num_lanes(); ++i) {
      if (!IsActive(i)) continue;
      const int64_t first = tuple.flat[values_.lane(i)] * element;
      sectors.Insert(first >> 5);
      const int64_t last = (first + width * element - 1) >> 5;
      if (last != first >> 5) sectors.Insert(last);
    }
    static_assert(kSectorBytes == 1 << 5);
    return sectors.size();
  }

  double Wavefronts(const Tuple& tuple, int64_t element, int64_t width) const {
    const int64_t words = std::max<int64_t>(1, width * element / kWordBytes);
    const int lanes_per_pass = static_cast<int>(std::max<int64_t>(1, kBanks / words));
    double wavefronts = 0;
    for (int begin = 0; begin < values_.num_lanes(); begin += lanes_per_pass) {
      std::array<uint8_t, kBanks> load = {};
      Distinct seen;
      uint8_t most = 0;
      const int end = std::min(begin + lanes_per_pass, values_.num_lanes());
      for (int i = begin; i < end; ++i) {
        if (!IsActive(i)) continue;
        const int64_t word = tuple.flat[values_.lane(i)] * element / kWordBytes;
        if (!seen.Insert(word)) continue;
        for (int64_t w = 0; w < std::min(words, kBanks); ++w)
          most = std::max(most, ++load[static_cast<size_t>((word + w) & (kBanks - 1))]);
      }
      wavefronts += most;
    }
    return wavefronts;
  }

  double UnrolledRun(const Access& access) const {
    for (int d = nest_.depth(); d-- > nest_.first_of_body;) {
      if (access.strides[d] == 1) return static_cast<double>(nest_.loops[d].extent);
    }
    return 1;
  }

  double StackTrips(const Access& access, ir::Stmt) const {
    double trips = 1;
    for (int d = 0; d < nest_.first_of_body; ++d) {
      if (!IsBound(nest_.loops[d].kind) && nest_.loops[d].kind == LoopKind::kSerial &&
          access.depends_on(d)) {
        trips *= static_cast<double>(nest_.loops[d].extent);
      }
    }
    return trips > 1 ? trips : 0;
  }

  const ir::Program& program_;
  const Nest& nest_;
  const std::span<const Expr> loaded_;
  const bool gpu_;
  const int cpu_vector_bytes_;
  const uint32_t active_;
  RewrittenIn rewritten_in_;
  IndexValues& values_;
  std::vector<Access> accesses_;
  // Indexed by access.
  std::vector<std::vector<Tuple>> tuples_;
};

}  // namespace

bool IsThread(LoopKind kind) { return kind >= LoopKind::kThreadX; }
bool IsBound(LoopKind kind) { return kind >= LoopKind::kBlockX; }

std::vector<Access> FindAccesses(const ir::Program& program, ir::Stmt store, const Nest& nest,
                                 std::span<const ir::Expr> loaded, int cpu_vector_bytes,
                                 uint32_t active, RewrittenIn rewritten_in, IndexValues& values) {
  return Finder(program, nest, loaded, cpu_vector_bytes, active, rewritten_in, values).Find(store);
}

}  // namespace kiln::features
