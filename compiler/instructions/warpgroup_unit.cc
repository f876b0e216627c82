#include "compiler/instructions/warpgroup_unit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <string_view>

namespace kiln::instructions {
namespace {

constexpr std::string_view kWarpgroups =
    R"cuda(// From sm_90a on: products of tiles by 128 threads together, beside what they do themselves.
// The units see as well what the threads wrote to shared memory.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Products behind it begin with what is in registers before.
__device__ __forceinline__ void start_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until so many of what was committed are under way, the latest ones.
template <int kUnderWay>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kUnderWay) : "memory");
}
// The same, where the sums of the others are read next. The assembler rounds two sums by one
// instruction, which it may put in front of the wait where both are in one basic block; so that a
// block ends here. It doesn't know that each grid has blocks. No block ends where the sums are no
// more than computed with: the branch costs registers, and ptxas puts a wait of its own before it.
template <int kUnderWay, bool kMayBeRounded = true>
__device__ __forceinline__ void wait_for_sums() {
  wait_for_products<kUnderWay>();
  if (!kMayBeRounded) return;
  unsigned blocks;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
  if (blocks == 0) asm volatile("trap;");
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
std::string SumName(int64_t i, char constraint) {
  return fmt::format("\"+{}\"({}[{} * kTiles + {} * kNeighbours])", constraint,
                     i % 4 < 2 ? "low" : "high", i / 4, i % 2);
}

// Returns "f32.f16.f16" for f16.
std::string TypesOf(const MatrixUnit& unit) {
  return fmt::format("{0}.{1}.{1}", unit.sum.is_float() ? "f32" : "s32", unit.name);
}

// Returns the flags behind the operands: whether to add to the sums, signs of floats, and of 16
// bits which factors are transposed.
std::string FlagsOf(const WarpgroupUnit& of, int64_t next_operand) {
  std::string text = "p";
  if (of.unit->sum.is_float()) text += ", 1, 1";
  if (of.unit->factor.bytes() != 2) return text;
  if (of.is_first_shared) text += ", 0";
  return text + fmt::format(", %{}", next_operand);
}

std::string MultiplyText(const WarpgroupUnit& of) {
  const int64_t sums = of.columns / 2;
  const bool is_transposable = of.unit->factor.bytes() == 2;
  const auto operand = [](int64_t i) { return fmt::format("%{}", i); };
  const int64_t second = sums + (of.is_first_shared ? 1 : 4);
  const std::string first = of.is_first_shared ? operand(sums)
                                               : fmt::format("{{%{}, %{}, %{}, %{}}}", sums,
                                                             sums + 1, sums + 2, sums + 3);
  return fmt::format(
      "  if constexpr (kColumns == {0}) {{\n"
      "    asm volatile(\n"
      "        \"{{\\n.reg .pred p;\\nsetp.ne.b32 p, 1, 0;\\n\"\n"
      "        \"wgmma.mma_async.sync.aligned.m64n{0}k{1}.{2} {{\"{3}}}, \"\n"
      "        \"{4}, {5}, {6};\\n}}\\n\"\n"
      "        :{7}\n"
      "        : {8}, \"l\"(b){9}\n"
      "        : \"memory\");\n"
      "  }}\n",
      of.columns, of.unit->depth(), TypesOf(*of.unit), Operands(sums, "        ", "\"", operand),
      first, operand(second), FlagsOf(of, second + 1),
      Operands(sums, "          ", "",
               [&](int64_t i) { return SumName(i, of.unit->sum.is_float() ? 'f' : 'r'); }),
      of.is_first_shared ? "\"l\"(a)" : "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])",
      is_transposable ? ", \"n\"(kTransposed)" : "");
}

std::string SettleText(const MatrixUnit& unit) {
  return fmt::format(
      "template <int kCount>\n"
      "__device__ __forceinline__ void settle({} (&sums)[kCount]) {{\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kCount; ++i) asm volatile(\"\" : \"+{}\"(sums[i])::\"memory\");\n"
      "}}\n",
      unit.sum.is_float() ? "float" : "int", unit.sum.is_float() ? 'f' : 'r');
}

}  // namespace

std::string WarpgroupDefinitions(const WarpgroupUnits& units) {
  std::string text(kWarpgroups);
  text += "// The compiler moves nothing that it does with the sums past it.\n";
  std::set<std::string> settles;
  for (const WarpgroupUnit& of : units) settles.insert(SettleText(*of.unit));
  text += fmt::format("{}", fmt::join(settles, ""));
  // Each instruction is a case of its function.
  for (auto first = units.begin(); first != units.end();) {
    const auto is_other = [&](const WarpgroupUnit& of) {
      return of.unit != first->unit || of.is_first_shared != first->is_first_shared;
    };
    const auto end = std::find_if(first, units.end(), is_other);
    std::string body;
    for (const WarpgroupUnit& of : std::ranges::subrange(first, end)) body += MultiplyText(of);
    text += fmt::format(
        "// c += a b, tiles of 64 x {0} and {0} x kColumns. low and high are a thread's rows of "
        "c, kTiles from 8 columns to the next, kNeighbours from one to the next.\n"
        "template <int kColumns, int kTransposed, int kTiles = 2, int kNeighbours = 1>\n"
        "__device__ __forceinline__ void multiply_warpgroup_{1}({2}* low, {2}* high,\n"
        "    {3}, unsigned long long b) {{\n{4}}}\n",
        first->unit->depth(), first->unit->name, first->unit->sum.is_float() ? "float" : "int",
        first->is_first_shared ? "unsigned long long a" : "const unsigned (&a)[4]", body);
    first = end;
  }
  return text + "\n";
}

}  // namespace kiln::instructions
