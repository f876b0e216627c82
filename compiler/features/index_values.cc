#include "compiler/features/index_values.h"

#include <algorithm>
#include <bit>

#include "absl/container/inlined_vector.h"
#include "base/numbers/rng.h"
#include "compiler/ir/integer_ops.h"
#include "compiler/ir/traverse.h"

namespace kiln::features {
namespace {

using arith::Interval;
using ir::Expr;
using ir::LoopKind;
using ir::Op;

// Blocks are so small that the allocator keeps them at hand.
constexpr size_t kBlockValues = 1 << 11;
constexpr int kWarp = 32;
// Fractions of the roots of primes. Their multiples fill the unit cube evenly, and none of them is
// in phase with another one or with a divisor of an extent.
constexpr double kStrides[] = {0.41421356237, 0.73205080757, 0.2360679775,  0.64575131106,
                               0.31662479036, 0.60555127546, 0.12310562562, 0.35889894354,
                               0.79583152331, 0.38516480713, 0.56776436283, 0.0827625303,
                               0.40312423743, 0.5574385243,  0.8556546004,  0.28010988928};

// These functions wrap around, because a guarded access may be far outside at a point.
int64_t WrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t WrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t WrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Divides through a double, which is far cheaper than the division of 64-bit integers.
struct Divisor {
  int64_t c;
  double inverse;
  int64_t Quotient(int64_t a) const {
    auto q = static_cast<int64_t>(static_cast<double>(a) * inverse);
    const int64_t rest = WrapSub(a, WrapMul(q, c));
    // Truncation and rounding change the quotient by one at most, for values below 2^52.
    if (rest < 0) --q;
    if (rest >= c) ++q;
    return q;
  }
};

}  // namespace

IndexValues::IndexValues(const ir::Program& program)
    : program_(program), depth_of_var_(program.vars.size(), -1), table_(256) {}

void IndexValues::Begin(std::span<const EnclosingLoop> loops, const std::array<int64_t, 3>& block) {
  for (const EnclosingLoop& loop : loops_) depth_of_var_[loop.var] = -1;
  loops_.assign(loops.begin(), loops.end());
  block_ = block;
  for (size_t d = 0; d < loops.size(); ++d) depth_of_var_[loops[d].var] = static_cast<int32_t>(d);
  num_loops_ = static_cast<int>(loops.size());
  const int64_t threads = block[0] * block[1] * block[2];
  num_lanes_ = threads > 1 ? static_cast<int>(std::min<int64_t>(threads, kWarp)) : 0;
  num_samples_ = 0;
  Restart();
}

void IndexValues::BeginSamples(uint64_t sampled_loops) {
  period_.assign(loops_.size(), 0);
  int64_t iterations = 1;
  for (size_t d = loops_.size(); d-- > 0;) {
    if ((sampled_loops >> std::min<size_t>(d, 63) & 1) == 0) continue;
    period_[d] = iterations;
    iterations *= std::min<int64_t>(loops_[d].extent, kMaxSamples + 1);
    iterations = std::min<int64_t>(iterations, kMaxSamples + 1);
  }
  samples_are_all_ = iterations <= kMaxSamples;
  num_samples_ = static_cast<int>(std::clamp<int64_t>(iterations, 1, kMaxSamples));
  num_lanes_ = 0;
  Restart();
}

void IndexValues::Restart() {
  size_ = 3 * num_loops_ + 2 + num_lanes_ + num_samples_;
  ++generation_;
  entries_ = 0;
  block_index_ = block_used_ = 0;
}

void IndexValues::FillSamples(int depth, int64_t* out) const {
  const int64_t period = period_[static_cast<size_t>(depth)];
  const int64_t extent = loops_[static_cast<size_t>(depth)].extent;
  if (period == 0) {
    std::fill(out, out + num_samples_, 0);
  } else if (samples_are_all_) {
    for (int64_t i = 0, iteration = 0; i < num_samples_; i += period) {
      std::fill(out + i, out + i + period, iteration);
      if (++iteration == extent) iteration = 0;
    }
  } else {
    const double stride = kStrides[static_cast<size_t>(depth) % std::size(kStrides)];
    double at = 0.5;
    for (int i = 0; i < num_samples_; ++i) {
      out[i] = static_cast<int64_t>(at * static_cast<double>(extent));
      at += stride;
      if (at >= 1) at -= 1;
    }
  }
}

int64_t* IndexValues::Allocate() {
  const size_t size = static_cast<size_t>(size_);
  if (blocks_.empty() || block_used_ + size > kBlockValues) {
    if (!blocks_.empty()) ++block_index_;
    if (block_index_ == blocks_.size())
      blocks_.push_back(std::make_unique_for_overwrite<int64_t[]>(std::max(size, kBlockValues)));
    block_used_ = 0;
  }
  int64_t* result = blocks_[block_index_].get() + block_used_;
  block_used_ += size;
  return result;
}

IndexValues::Entry& IndexValues::Find(Expr e) {
  const size_t mask = table_.size() - 1;
  size_t i = e->hash & mask;
  while (table_[i].generation == generation_ && table_[i].e != e) i = (i + 1) & mask;
  return table_[i];
}

void IndexValues::GrowTable() {
  std::vector<Entry> old(2 * table_.size());
  old.swap(table_);
  for (const Entry& entry : old) {
    if (entry.generation == generation_) Find(entry.e) = entry;
  }
}

IndexValue IndexValues::Of(Expr e) {
  if (const Entry& entry = Find(e); entry.generation == generation_) return entry.value;
  const IndexValue value = Compute(e);
  if (2 * ++entries_ > table_.size()) GrowTable();
  Find(e) = {e, generation_, value};
  return value;
}

IndexValue IndexValues::Constant(int64_t value) {
  int64_t* out = Allocate();
  std::fill(out, out + size_, value);
  if (!Interval::Of(value).bounded()) {
    std::fill(out + lo(0), out + lo(num_loops_), Interval::RoundDown(value));
    std::fill(out + hi(0), out + hi(num_loops_), Interval::RoundUp(value));
  }
  return {0, out};
}

IndexValue IndexValues::Variable(Expr e) {
  const int depth = depth_of_var_[e->id];
  KILN_CHECK(depth >= 0, "variable {} is used outside its loop", e->id);
  const int64_t extent = loops_[depth].extent;
  int64_t* out = Allocate();
  for (int level = 0; level <= num_loops_; ++level) {
    out[lo(level)] = 0;
    out[hi(level)] = level <= depth ? extent - 1 : 0;
  }
  for (int d = 0; d < num_loops_; ++d) out[step(d)] = d == depth && extent > 1 ? 1 : 0;
  const LoopKind kind = loops_[depth].kind;
  for (int i = 0; i < num_lanes_; ++i) {
    int64_t value = extent / 2;
    if (kind == LoopKind::kThreadX) value = i % block_[0];
    if (kind == LoopKind::kThreadY) value = i / block_[0] % block_[1];
    if (kind == LoopKind::kThreadZ) value = i / (block_[0] * block_[1]);
    if (kind == LoopKind::kVectorized) value = 0;
    out[lane(i)] = std::min(value, extent - 1);
  }
  if (num_samples_ > 0) FillSamples(depth, out + sample(0));
  return {uint64_t{1} << std::min(depth, 63), out};
}

template <typename OfRanges>
void IndexValues::SetRanges(int64_t* out, IndexValue a, IndexValue b, OfRanges of_ranges) const {
  // The last level is a point.
  for (int level = 0; level < num_loops_; ++level) {
    const Interval range = of_ranges(Range(a, level), Range(b, level));
    out[lo(level)] = range.lo;
    out[hi(level)] = range.hi;
  }
}

IndexValue IndexValues::DivideBy(IndexValue a, int64_t c) {
  int64_t* out = Allocate();
  if (std::has_single_bit(static_cast<uint64_t>(c))) {
    const int shift = std::countr_zero(static_cast<uint64_t>(c));
    for (int i = 0; i < size_; ++i) out[i] = a.at[i] >> shift;
  } else {
    const Divisor divisor{c, 1.0 / static_cast<double>(c)};
    for (int i = 0; i < size_; ++i) out[i] = divisor.Quotient(a.at[i]);
  }
  for (int level = 0; level < num_loops_ && !Range(a, 0).bounded(); ++level) {
    if (a.at[lo(level)] == -arith::kUnbounded) out[lo(level)] = -arith::kUnbounded;
    if (a.at[hi(level)] == arith::kUnbounded) out[hi(level)] = arith::kUnbounded;
  }
  return {a.loops, out};
}

IndexValue IndexValues::RemainderBy(IndexValue a, int64_t c) {
  const IndexValue quotient = DivideBy(a, c);
  int64_t* out = Allocate();
  for (int i = 0; i < size_; ++i) out[i] = WrapSub(a.at[i], WrapMul(quotient.at[i], c));
  for (int level = 0; level <= num_loops_; ++level) {
    if (quotient.at[lo(level)] == quotient.at[hi(level)]) continue;
    out[lo(level)] = 0;
    out[hi(level)] = c - 1;
  }
  return {a.loops, out};
}

IndexValue IndexValues::Arithmetic(Op op, IndexValue a, IndexValue b) {
  int64_t* out = Allocate();
  const uint64_t loops = a.loops | b.loops;
  switch (op) {
    case Op::kAdd:
      for (int i = 0; i < size_; ++i) out[i] = WrapAdd(a.at[i], b.at[i]);
      if (!(Range(a, 0) + Range(b, 0)).bounded())
        SetRanges(out, a, b, [](Interval x, Interval y) { return x + y; });
      return {loops, out};
    case Op::kMin:
      for (int i = 0; i < size_; ++i) out[i] = std::min(a.at[i], b.at[i]);
      return {loops, out};
    case Op::kMax:
      for (int i = 0; i < size_; ++i) out[i] = std::max(a.at[i], b.at[i]);
      return {loops, out};
    case Op::kSub:
      for (int i = 0; i < size_; ++i) out[i] = WrapSub(a.at[i], b.at[i]);
      SetRanges(out, a, b, [](Interval x, Interval y) { return x - y; });
      return {loops, out};
    case Op::kMul:
      for (int i = 0; i < size_; ++i) out[i] = WrapMul(a.at[i], b.at[i]);
      SetRanges(out, a, b, [](Interval x, Interval y) { return x * y; });
      return {loops, out};
    // A division by an expression that is not constant.
    default:
      for (int i = 0; i < size_; ++i) {
        if (b.at[i] == 0) {
          out[i] = 0;
        } else {
          out[i] =
              op == Op::kFloorDiv ? ir::FloorDiv(a.at[i], b.at[i]) : ir::FloorMod(a.at[i], b.at[i]);
        }
      }
      SetRanges(out, a, b, op == Op::kFloorDiv ? arith::FloorDiv : arith::FloorMod);
      return {loops, out};
  }
}

// Values are 0 or 1. At levels the range is that of both sides.
IndexValue IndexValues::Compare(Expr e) {
  int64_t* out = nullptr;
  uint64_t loops = 0;
  const bool integers = e->num_args > 0 && !e->arg(0)->type.is_float();
  if (!integers) return Constant(1);
  const IndexValue a = Of(e->arg(0));
  const IndexValue b = e->num_args > 1 ? Of(e->arg(1)) : a;
  out = Allocate();
  loops = a.loops | b.loops;
  const auto apply = [&](auto&& op) {
    for (int i = 0; i < size_; ++i) out[i] = op(a.at[i], b.at[i]) ? 1 : 0;
  };
  switch (e->op) {
    case Op::kEq:
      apply([](int64_t x, int64_t y) { return x == y; });
      break;
    case Op::kNe:
      apply([](int64_t x, int64_t y) { return x != y; });
      break;
    case Op::kLt:
      apply([](int64_t x, int64_t y) { return x < y; });
      break;
    case Op::kLe:
      apply([](int64_t x, int64_t y) { return x <= y; });
      break;
    case Op::kGt:
      apply([](int64_t x, int64_t y) { return x > y; });
      break;
    case Op::kGe:
      apply([](int64_t x, int64_t y) { return x >= y; });
      break;
    case Op::kAnd:
      apply([](int64_t x, int64_t y) { return x != 0 && y != 0; });
      break;
    case Op::kOr:
      apply([](int64_t x, int64_t y) { return x != 0 || y != 0; });
      break;
    default:
      // The operator kNot.
      apply([](int64_t x, int64_t) { return x == 0; });
      break;
  }
  for (int level = 0; level < num_loops_; ++level) {
    out[lo(level)] = 0;
    out[hi(level)] = 1;
  }
  return {loops, out};
}

IndexValue IndexValues::Choose(Expr e) {
  const IndexValue c = Of(e->arg(0)), a = Of(e->arg(1)), b = Of(e->arg(2));
  int64_t* out = Allocate();
  for (int i = 0; i < size_; ++i) out[i] = c.at[i] != 0 ? a.at[i] : b.at[i];
  for (int level = 0; level < num_loops_; ++level) {
    out[lo(level)] = std::min(a.at[lo(level)], b.at[lo(level)]);
    out[hi(level)] = std::max(a.at[hi(level)], b.at[hi(level)]);
  }
  return {a.loops | b.loops | c.loops, out};
}

IndexValue IndexValues::Compute(Expr e) {
  switch (e->op) {
    case Op::kInt:
      return Constant(e->int_value);
    case Op::kVar:
      return Variable(e);
    case Op::kAdd:
    case Op::kSub:
    case Op::kMin:
    case Op::kMax:
      return Arithmetic(e->op, Of(e->arg(0)), Of(e->arg(1)));
    case Op::kMul:
      if (e->arg(1)->is_const_int() && e->arg(1)->int_value >= 0) {
        const IndexValue a = Of(e->arg(0));
        const int64_t c = e->arg(1)->int_value;
        int64_t* out = Allocate();
        for (int i = 0; i < size_; ++i) out[i] = WrapMul(a.at[i], c);
        if (!(Range(a, 0) * c).bounded())
          SetRanges(out, a, a, [c](Interval x, Interval) { return x * c; });
        return {a.loops, out};
      }
      return Arithmetic(e->op, Of(e->arg(0)), Of(e->arg(1)));
    case Op::kFloorDiv:
    case Op::kFloorMod:
      if (e->arg(1)->is_const_int() && e->arg(1)->int_value > 0) {
        const int64_t c = e->arg(1)->int_value;
        return e->op == Op::kFloorDiv ? DivideBy(Of(e->arg(0)), c) : RemainderBy(Of(e->arg(0)), c);
      }
      return Arithmetic(e->op, Of(e->arg(0)), Of(e->arg(1)));
    case Op::kSelect:
    case Op::kIf:
      return Choose(e);
    case Op::kCast:
      if (!e->arg(0)->type.is_float()) return Of(e->arg(0));
      break;
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
      return Compare(e);
    default:
      break;
  }
  return Data(e);
}

// Makes values for loads from memory and for calculations with them. The values are random, but
// equal for equal operands, and for programs that differ only in the numbers of their variables.
IndexValue IndexValues::Data(Expr e) {
  uint64_t loops = 0;
  absl::InlinedVector<IndexValue, 4> operands;
  for (Expr arg : e->args()) {
    operands.push_back(Of(arg));
    loops |= operands.back().loops;
  }
  const int64_t limit = LimitOf(e);
  const uint64_t seed = MixBits(static_cast<uint64_t>(e->op) + (static_cast<uint64_t>(limit) << 8));
  int64_t* out = Allocate();
  for (int i = 0; i < size_; ++i) {
    uint64_t hash = seed;
    for (const IndexValue& operand : operands)
      hash = MixBits(hash ^ static_cast<uint64_t>(operand.at[i]));
    out[i] = static_cast<int64_t>(hash % static_cast<uint64_t>(limit));
  }
  for (int level = 0; level <= num_loops_; ++level) {
    // If the loops are fixed, the value is fixed.
    const bool runs = level < 63 ? (loops >> level) != 0 : (loops >> 63) != 0;
    out[lo(level)] = runs ? 0 : out[base()];
    out[hi(level)] = runs ? limit - 1 : out[base()];
  }
  return {loops, out};
}

int64_t IndexValues::LimitOf(Expr e) const {
  if (e->type.is_bool()) return 2;
  int64_t limit = 1024;
  ir::Visit(e, [&](Expr node) {
    if (node->op != Op::kLoad) return;
    const int64_t below = program_.buffers[node->id].index_limit;
    if (below > 0) limit = below;
  });
  if (e->op == Op::kLoad && program_.buffers[e->id].index_limit > 0)
    limit = program_.buffers[e->id].index_limit;
  return limit;
}

}  // namespace kiln::features
