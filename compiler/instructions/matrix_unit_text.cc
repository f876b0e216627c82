#include "compiler/instructions/matrix_unit_text.h"

#include <string_view>

#include "compiler/instructions/filled.h"

namespace kiln::instructions {
namespace {

// $N: a part of a function's name. $P: a part of its instruction's.
constexpr std::string_view kLoadTiles =
    R"cuda(__device__ __forceinline__ void load_tiles$N(unsigned& a, unsigned& b, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2$P.shared.b16 {%0, %1}, [%2];"
               : "=r"(a), "=r"(b)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}
__device__ __forceinline__ void load_tiles$N(unsigned& a, unsigned& b, unsigned& c, unsigned& d,
                                           const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4$P.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}
)cuda";
// $T and $C: a sum in C and its register, $S in PTX; $K: the depth.
constexpr std::string_view kMultiplyTiles =
    R"cuda(// c += a b, tiles of 16 x $K and $K x 8.
__device__ __forceinline__ void multiply_tiles_$P($T& c0, $T& c1, $T& c2, $T& c3,
                                                   const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k$K.row.col.$S.$P.$P.$S {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
               "{%8, %9}, {%0, %1, %2, %3};"
               : "+$C"(c0), "+$C"(c1), "+$C"(c2), "+$C"(c3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
)cuda";

constexpr std::string_view kRoundTiles =
    R"cuda(// To 10 bits of the mantissa, halves away from zero.
template <int kTiles, int kParts>
__device__ __forceinline__ void round_tiles(unsigned (&tiles)[kTiles][kParts]) {
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kParts; ++j)
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(tiles[i][j]) : "f"(__uint_as_float(tiles[i][j])));
  }
}
)cuda";

constexpr std::string_view kUnzipBytes =
    R"cuda(// Registers with two pairs of bytes each, x of the terms before those of y, or, in the
// upper two of four threads, behind them: then the first bytes of all pairs in x, in the order of
// their terms, and the second ones in y.
__device__ __forceinline__ void unzip_bytes(unsigned& x, unsigned& y, int lane) {
  const bool swapped = lane % 4 >= 2;
  const unsigned first = __byte_perm(x, y, swapped ? 0x2064 : 0x6420);
  y = __byte_perm(x, y, swapped ? 0x3175 : 0x7531);
  x = first;
}
)cuda";

std::string MultiplyTiles(const MatrixUnit& unit) {
  const bool is_float = unit.sum.is_float();
  return Filled(kMultiplyTiles, {{"$P", unit.name},
                                 {"$K", std::to_string(unit.depth())},
                                 {"$T", is_float ? "float" : "int"},
                                 {"$C", is_float ? "f" : "r"},
                                 {"$S", is_float ? "f32" : "s32"}});
}

}  // namespace

std::string MatrixUnitDefinitions(const std::set<const MatrixUnit*>& units, bool unzips_bytes) {
  std::string text =
      "// Two or four tiles of 8 rows of 16 bytes in shared memory. Thread 8*i + r of the warp "
      "says\n"
      "// where row r of tile i is. Of each tile thread t gets bytes 4*(t%4) to 4*(t%4) + 3 of row "
      "t/4.\n" +
      Filled(kLoadTiles, {{"$N", ""}, {"$P", ""}}) +
      "// The same of the transposed tiles, whose elements are 16 bits.\n" +
      Filled(kLoadTiles, {{"$N", "_transposed"}, {"$P", ".trans"}});
  bool rounds = false;
  for (const MatrixUnit* unit : units) {
    text += MultiplyTiles(*unit);
    rounds |= unit->rounds;
  }
  if (rounds) text += kRoundTiles;
  if (unzips_bytes) text += kUnzipBytes;
  return text + "\n";
}

}  // namespace kiln::instructions
