#include "compiler/arith/interval.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "compiler/ir/integer_ops.h"

namespace kiln::arith {

void PrintTo(const Interval& r, std::ostream* out) { *out << r.lo << " .. " << r.hi; }

namespace {
using ir::Op;

// Returns all intervals with ends in -n .. n.
std::vector<Interval> SmallIntervals(int64_t n) {
  std::vector<Interval> all;
  for (int64_t lo = -n; lo <= n; ++lo) {
    for (int64_t hi = lo; hi <= n; ++hi) all.push_back({lo, hi});
  }
  return all;
}

struct Operation {
  const char* name;
  Interval (*of_intervals)(Interval, Interval);
  __int128 (*of_values)(__int128, __int128);
  bool divides = false;
  // The result is the hull of the values, not only an interval that contains them.
  bool is_tight = true;
};

__int128 Quotient(__int128 a, __int128 b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

using V = __int128;
using I = Interval;
constexpr Operation kOperations[] = {
    {"+", [](I a, I b) { return a + b; }, [](V a, V b) { return a + b; }},
    {"-", [](I a, I b) { return a - b; }, [](V a, V b) { return a - b; }},
    {"*", [](I a, I b) { return a * b; }, [](V a, V b) { return a * b; }},
    {"//", FloorDiv, Quotient, true},
    {"%", FloorMod, [](V a, V b) { return a - b * Quotient(a, b); }, true, false},
    {"&", [](I a, I b) { return Bits(ir::Op::kBitAnd, a, b); }, [](V a, V b) { return a & b; },
     false, false},
    {"|", [](I a, I b) { return Bits(ir::Op::kBitOr, a, b); }, [](V a, V b) { return a | b; },
     false, false},
    {"^", [](I a, I b) { return Bits(ir::Op::kBitXor, a, b); }, [](V a, V b) { return a ^ b; },
     false, false},
    {"min", Min, [](V a, V b) { return std::min(a, b); }},
    {"max", Max, [](V a, V b) { return std::max(a, b); }},
};

TEST(Interval, OperationsAgreeWithBruteForce) {
  const std::vector<Interval> all = SmallIntervals(6);
  for (const Operation& operation : kOperations) {
    for (const Interval a : all) {
      for (const Interval b : all) {
        if (operation.divides && b.Contains(0)) {
          EXPECT_EQ(operation.of_intervals(a, b), kEverything) << operation.name;
          continue;
        }
        Interval hull = kNothing;
        for (int64_t x = a.lo; x <= a.hi; ++x) {
          for (int64_t y = b.lo; y <= b.hi; ++y)
            hull = Hull(hull, Interval::Of(static_cast<int64_t>(operation.of_values(x, y))));
        }
        const Interval result = operation.of_intervals(a, b);
        if (operation.is_tight) {
          ASSERT_EQ(result, hull) << operation.name << testing::PrintToString(a)
                                  << testing::PrintToString(b);
        } else {
          ASSERT_TRUE(result.Contains(hull))
              << operation.name << testing::PrintToString(a) << testing::PrintToString(b);
        }
      }
    }
  }
}

TEST(Interval, ShiftsAgreeWithBruteForce) {
  for (const Interval a : SmallIntervals(12)) {
    for (int64_t count = 0; count < 5; ++count) {
      const Interval by = Interval::Of(count);
      EXPECT_EQ(Bits(ir::Op::kShl, a, by), Interval::Of(a.lo * (1 << count), a.hi * (1 << count)));
      EXPECT_EQ(Bits(ir::Op::kShr, a, by), Interval::Of(a.lo >> count, a.hi >> count));
    }
    const Interval shifted = Bits(ir::Op::kShr, a, {0, 3});
    EXPECT_TRUE(shifted.Contains(Interval{std::min(a.lo, a.lo >> 3), std::max(a.hi, a.hi >> 3)}));
  }
}

TEST(Interval, RemaindersByAConstantAreTightWhereTheQuotientIsTheSame) {
  for (const Interval a : SmallIntervals(12)) {
    for (int64_t c : {-5, -1, 1, 2, 7}) {
      const Interval r = FloorMod(a, Interval::Of(c));
      const Interval all = c > 0 ? Interval{0, c - 1} : Interval{c + 1, 0};
      EXPECT_TRUE(all.Contains(r));
      if (ir::FloorDiv(a.lo, c) != ir::FloorDiv(a.hi, c)) continue;
      EXPECT_EQ(r.hi - r.lo, a.hi - a.lo) << testing::PrintToString(a) << " % " << c;
    }
  }
}

TEST(Interval, UnaryOperationsAgreeWithBruteForce) {
  for (const Interval a : SmallIntervals(20)) {
    EXPECT_EQ(-a, (Interval{-a.hi, -a.lo}));
    for (int64_t k = -5; k <= 5; ++k) {
      EXPECT_EQ(a * k, a * Interval::Of(k));
      if (k > 0) {
        const auto common = CommonQuotient(a, k);
        const bool is_common = ir::FloorDiv(a.lo, k) == ir::FloorDiv(a.hi, k);
        EXPECT_EQ(common, is_common ? std::optional(ir::FloorDiv(a.lo, k)) : std::nullopt);
      }
      if (k == 0) continue;
      const Interval divisible = Divisible(a, k);
      for (int64_t x = -30; x <= 30; ++x)
        ASSERT_EQ(divisible.Contains(x), a.Contains(k * x)) << k << " * " << x;
    }
  }
}

bool IsIn(__int128 value, Interval r) {
  return (r.lo == -kUnbounded || value >= r.lo) && (r.hi == kUnbounded || value <= r.hi);
}

// Returns a random end: a small one, one around the limit, or an unbounded one.
int64_t AnyEnd(std::mt19937_64& rng, int64_t unbounded) {
  const auto small = static_cast<int64_t>(rng() % 9) - 4;
  const int64_t sign = rng() % 2 == 0 ? 1 : -1;
  switch (rng() % 6) {
    case 0:
      return small;
    case 1:
      return sign * ((int64_t{1} << (rng() % 60)) + small);
    case 2:
      return sign * (kEndLimit / 2 + small);
    case 3:
      return sign * (kEndLimit - 1 - std::abs(small));
    case 4:
      return static_cast<int64_t>(rng()) >> 4;
    default:
      return unbounded;
  }
}

Interval AnyInterval(std::mt19937_64& rng) {
  Interval r = Interval::Of(AnyEnd(rng, -kUnbounded), AnyEnd(rng, kUnbounded));
  if (r.empty() && r.lo != kUnbounded && r.hi != -kUnbounded) std::swap(r.lo, r.hi);
  return Interval::Of(r.lo, r.hi);
}

// Returns a value inside of the interval, far out if the interval is unbounded.
__int128 AnyValue(std::mt19937_64& rng, Interval r) {
  const __int128 far = __int128{1} << 63;
  const __int128 lo = r.lo == -kUnbounded ? -far : __int128{r.lo};
  const __int128 hi = r.hi == kUnbounded ? far : __int128{r.hi};
  if (rng() % 3 == 0) return rng() % 2 == 0 ? lo : hi;
  const auto size = static_cast<unsigned __int128>(hi - lo) + 1;
  const auto random = static_cast<unsigned __int128>(rng()) << 64 | rng();
  return lo + static_cast<__int128>(random % size);
}

TEST(Interval, ContainsAllValuesAroundTheLimits) {
  const uint64_t seed = 20;
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 200'000; ++round) {
    const Interval a = AnyInterval(rng), b = AnyInterval(rng);
    if (a.empty() || b.empty()) continue;
    const __int128 x = AnyValue(rng, a), y = AnyValue(rng, b);
    for (const Operation& operation : kOperations) {
      if (operation.divides && y == 0) continue;
      const Interval r = operation.of_intervals(a, b);
      ASSERT_TRUE(IsIn(operation.of_values(x, y), r))
          << "seed " << seed << " round " << round << ": " << testing::PrintToString(a)
          << operation.name << testing::PrintToString(b) << " is " << testing::PrintToString(r);
      // There is no end between the limit and unbounded.
      ASSERT_EQ(r, Interval::Of(r.lo, r.hi)) << operation.name;
    }
    const auto k = static_cast<int64_t>(rng()) >> (rng() % 64);
    ASSERT_TRUE(IsIn(x * k, a * k)) << "seed " << seed << " round " << round;
    if (k != 0 && x % k == 0) {
      ASSERT_TRUE(IsIn(x / k, Divisible(a, k))) << "seed " << seed << " round " << round;
    }
  }
}

TEST(Interval, UnboundedStaysUnbounded) {
  const Interval from_zero{0, kUnbounded};
  EXPECT_EQ(from_zero + Interval::Of(1 - kEndLimit), (Interval{1 - kEndLimit, kUnbounded}));
  EXPECT_EQ(FloorDiv(from_zero, Interval::Of(1000)), from_zero);
  EXPECT_EQ(from_zero * -1, (Interval{-kUnbounded, 0}));
  EXPECT_EQ(kEverything * 0, Interval::Of(0));
  EXPECT_EQ(CommonQuotient(from_zero, INT64_MAX), std::nullopt);
  EXPECT_FALSE((Interval::Of(kEndLimit - 1) + Interval::Of(1)).bounded());
  EXPECT_EQ(Interval::Of(INT64_MAX), (Interval{kEndLimit - 1, kUnbounded}));
}

TEST(Interval, ValuesOfTypes) {
  EXPECT_EQ(RangeOfType(ir::kUInt8), (Interval{0, 255}));
  EXPECT_EQ(RangeOfType(ir::kUInt32), (Interval{0, 4294967295}));
  EXPECT_EQ(RangeOfType(ir::kBool), (Interval{0, 1}));
  EXPECT_EQ(RangeOfType(ir::kInt8), (Interval{-128, 127}));
  EXPECT_EQ(RangeOfType(ir::kInt32), (Interval{INT32_MIN, INT32_MAX}));
  EXPECT_EQ(RangeOfType(ir::kInt64), kEverything);
  EXPECT_EQ(WrappedTo(ir::kInt8, {-128, 127}), (Interval{-128, 127}));
  EXPECT_EQ(WrappedTo(ir::kInt8, {100, 128}), (Interval{-128, 127}));
  EXPECT_EQ(RangeOfType(ir::kUInt64), (Interval{0, kUnbounded}));
  EXPECT_EQ(WrappedTo(ir::kUInt64, {3, 7}), (Interval{3, 7}));
  EXPECT_EQ(WrappedTo(ir::kUInt64, {-1, 7}), (Interval{0, kUnbounded}));
  EXPECT_EQ(WrappedTo(ir::kUInt64, {3, kUnbounded}), (Interval{0, kUnbounded}));
}

TEST(Interval, ComparisonsAreDecidedByDifferences) {
  const auto holds = [](Op op, int64_t difference) {
    return op == Op::kEq   ? difference == 0
           : op == Op::kNe ? difference != 0
           : op == Op::kLt ? difference < 0
           : op == Op::kLe ? difference <= 0
           : op == Op::kGt ? difference > 0
                           : difference >= 0;
  };
  for (Op op : {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe}) {
    for (const Interval r : SmallIntervals(3)) {
      int yes = 0, no = 0;
      for (int64_t d = r.lo; d <= r.hi; ++d) {
        ++(holds(op, d) ? yes : no);
        EXPECT_EQ(DifferenceWhere(op).Contains(d), holds(op, d) || op == Op::kNe);
      }
      const std::optional<bool> want = no == 0    ? std::optional(true)
                                       : yes == 0 ? std::optional(false)
                                                  : std::nullopt;
      EXPECT_EQ(Decide(op, r), want) << static_cast<int>(op) << testing::PrintToString(r);
    }
    EXPECT_EQ(Decide(op, kEverything), std::nullopt);
  }
}

}  // namespace
}  // namespace kiln::arith
