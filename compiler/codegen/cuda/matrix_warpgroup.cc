#include "compiler/codegen/cuda/matrix_warpgroup.h"

#include <algorithm>

namespace kiln::codegen {
namespace {
using arith::Linear;

constexpr int64_t kMaxColumns = 256, kColumnsOfTile = 8, kLeastSwizzleBytes = 32;
constexpr int64_t kElementsOfPiece = 8;  // 16 bytes
// Instructions whose operands are in registers of their own, so that they need not wait for each
// other.
constexpr int64_t kMostAhead = 8;

}  // namespace

StatusOr<WarpgroupFactor> DescribeColumns(CudaScope& scope, const Swizzle& swizzle,
                                          const ColumnPlaces& found) {
  const int64_t bytes = swizzle.element_bytes(), line = swizzle.width;
  if (swizzle.bytes < kLeastSwizzleBytes)
    return InvalidArgument("its rows are no multiple of {} bytes", kLeastSwizzleBytes);
  WarpgroupFactor factor;
  factor.columns = std::ssize(found.places) / 2 * kColumnsOfTile;
  if (factor.columns > kMaxColumns)
    return InvalidArgument("it has {} columns, at most {} can be", factor.columns, kMaxColumns);
  factor.is_transposed = found.k_stride != 1;
  const int64_t step = factor.is_transposed ? 1 : line;  // from a column to the next one
  if (found.column_stride != 2 * step || found.pair_stride != step ||
      (factor.is_transposed && found.k_stride != line))
    return InvalidArgument("its rows do not follow each other");
  // Of 8 columns each.
  std::vector<int64_t> tiles;
  for (size_t i = 0; i < found.places.size(); i += 2) {
    const Linear apart = found.places[i] - found.places[0];
    if (!apart.is_constant()) return InvalidArgument("its columns are not a constant apart");
    tiles.push_back(apart.constant);
  }
  const int64_t stride = factor.is_transposed ? swizzle.panel
                         : tiles.size() > 1   ? tiles[1]
                                              : swizzle.period();
  for (size_t j = 0; j < tiles.size(); ++j) {
    const int64_t column = static_cast<int64_t>(j) * kColumnsOfTile;
    const int64_t expected = factor.is_transposed ? column / line * stride + column % line
                                                  : static_cast<int64_t>(j) * stride;
    if (tiles[j] != expected) return InvalidArgument("its columns do not follow each other");
  }
  // Permutations are of addresses: lines are numbered from a multiple of 8.
  if (stride % swizzle.period() != 0 && factor.columns > (factor.is_transposed ? line : 8))
    return InvalidArgument("its rows are not a multiple of 8");
  const auto [whole, rest] = InPeriods(swizzle, found.start);
  const arith::Interval in_line = scope.simplifier().RangeOf(rest);
  const int64_t room = !factor.is_transposed   ? line - 2 * kElementsOfPiece
                       : factor.columns < line ? line - factor.columns
                                               : 0;
  const bool is_aligned = std::ranges::all_of(
      rest.terms, [](const arith::Term& term) { return term.coefficient % kElementsOfPiece == 0; });
  if (in_line.lo < 0 || in_line.hi > room || !is_aligned || rest.constant % kElementsOfPiece != 0)
    return InvalidArgument("it does not start in a row that is a multiple of 8");
  factor.start = found.start;
  factor.swizzle_bytes = swizzle.bytes;
  // Panels, and 8 rows; of neighbours along the sum there is but one panel.
  factor.leading_bytes = factor.is_transposed ? stride * bytes : 16;
  factor.stride_bytes = (factor.is_transposed ? swizzle.period() : stride) * bytes;
  return factor;
}

bool EmitWarpgroup(const WarpgroupText& tile, const std::string& tiles, CudaBlocks& blocks) {
  // Inner loops are unrolled: their instructions are in flight together.
  size_t first_inner = tile.loops.size();
  for (int64_t ahead = 1; first_inner > 0; --first_inner) {
    ahead *= tile.loops[first_inner - 1].second;
    if (ahead > kMostAhead) break;
  }
  const auto multiply = [&] {
    blocks.Line(fmt::format("unsigned {}[{}][4];", tiles, tile.rows.size()));
    tile.load(tiles);
    blocks.Line("start_products();");
    for (size_t i = 0; i < tile.rows.size(); ++i) {
      blocks.Line(fmt::format(
          "multiply_warpgroup_{}<{}, {}>(&{}, &{}, {}[{}], matrix_descriptor<{}, {}, {}>(&{}));",
          tile.type, tile.factor.columns, tile.factor.is_transposed ? 1 : 0, tile.rows[i].low,
          tile.rows[i].high, tiles, i, tile.factor.swizzle_bytes, tile.factor.leading_bytes,
          tile.factor.stride_bytes, tile.start()));
    }
    blocks.Line("commit_products();");
  };
  const auto emit = [&](auto& self, size_t depth) -> void {
    const bool is_first_inner = depth == first_inner;
    if (is_first_inner) blocks.Line(fmt::format("settle({});", tile.sums));
    if (depth == tile.loops.size()) {
      multiply();
    } else {
      const auto [var, extent] = tile.loops[depth];
      blocks.Loop(var, extent, depth >= first_inner ? extent : 0, [&] { self(self, depth + 1); });
    }
    // Registers of the next iteration are those of this one.
    if (is_first_inner && first_inner > 0) EmitWait(tile.sums, blocks);
  };
  emit(emit, 0);
  return first_inner == 0;
}

void EmitWait(const std::string& sums, CudaBlocks& blocks) {
  blocks.Line("wait_for_products();");
  blocks.Line(fmt::format("settle({});", sums));
}

// ---- preamble

namespace {

constexpr std::string_view kWarpgroups =
    R"cuda(// From sm_90a on: products of tiles by 128 threads together, beside what they do themselves.
// What the threads wrote to shared memory, their units see as well.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// What is in registers before is what products behind it begin with.
__device__ __forceinline__ void start_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// The compiler moves nothing that it does with the sums past it.
template <int kCount>
__device__ __forceinline__ void settle(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
// A matrix in shared memory (PTX ISA, "Matrix Descriptor Format").
template <int kSwizzleBytes, int kLeadingBytes, int kStrideBytes>
__device__ __forceinline__ unsigned long long matrix_descriptor(const void* start) {
  constexpr unsigned long long kMode = kSwizzleBytes == 128 ? 1 : kSwizzleBytes == 64 ? 2 : 3,
                               kStride = kStrideBytes / 16, kLeading = kLeadingBytes / 16;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(start));
  return kMode << 62 | kStride << 32 | kLeading << 16 | (address & 0x3ffff) >> 4;
}
)cuda";

// Names of operands, cut into lines.
template <typename Name>
std::string Operands(int64_t count, std::string_view indent, std::string_view quote, Name&& name) {
  constexpr int64_t kOfLine = 8;
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    if (i % kOfLine == 0) text += fmt::format("{}\n{}{}", i > 0 ? quote : "", indent, quote);
    text += name(i) + (i + 1 < count ? ", " : "");
  }
  return text;
}

// Sum i of a thread: columns 0 and 1 of its low row, then of its high row, tile after tile.
std::string SumName(int64_t i) {
  return fmt::format("\"+f\"({}[{}])", i % 4 < 2 ? "low" : "high", i / 4 * 2 + i % 2);
}

std::string MultiplyText(int64_t columns, std::string_view type) {
  const int64_t sums = columns / 2;
  return fmt::format(
      "  if constexpr (kColumns == {0}) {{\n"
      "    asm volatile(\n"
      "        \"{{\\n.reg .pred p;\\nsetp.ne.b32 p, 1, 0;\\n\"\n"
      "        \"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} {{\"{2}}}, \"\n"
      "        \"{{%{3}, %{4}, %{5}, %{6}}}, %{7}, p, 1, 1, %{8};\\n}}\\n\"\n"
      "        :{9}\n"
      "        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), \"n\"(kTransposed)\n"
      "        : \"memory\");\n"
      "  }}\n",
      columns, type,
      Operands(sums, "        ", "\"", [](int64_t i) { return fmt::format("%{}", i); }), sums,
      sums + 1, sums + 2, sums + 3, sums + 4, sums + 5, Operands(sums, "          ", "", SumName));
}

}  // namespace

std::string WarpgroupDefinitions(const WarpgroupUnits& units) {
  std::string text(kWarpgroups);
  for (const std::string_view type : {"f16", "bf16"}) {
    std::string body;
    for (const auto& [columns, of] : units) {
      if (of == type) body += MultiplyText(columns, type);
    }
    if (body.empty()) continue;
    text += fmt::format(
        "// c += a b, tiles of 64 x 16 and 16 x kColumns. low and high are a thread's rows of c.\n"
        "template <int kColumns, int kTransposed>\n"
        "__device__ __forceinline__ void multiply_warpgroup_{}(float* low, float* high,\n"
        "    const unsigned (&a)[4], unsigned long long b) {{\n{}}}\n",
        type, body);
  }
  return text + "\n";
}

}  // namespace kiln::codegen
