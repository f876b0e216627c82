// The text of a factor of matrix units that each thread computes in registers, right before the
// product (MatrixOperand::Reading::kComputed). Internal to this folder.
//
// Of 8-bit weights with a scale, of which thread t of a warp has 4 neighbouring columns in 4 tiles:
//
//   const unsigned w_words = *reinterpret_cast<const unsigned*>(&w_shared[...]);    // term 2*(t%4)
//   const unsigned w_words_1 = *reinterpret_cast<const unsigned*>(&w_shared[...]);  // the next one
//   const uint2 scale_words = *reinterpret_cast<const uint2*>(&scale_shared[...]);
//   tiles[0][0] = multiply_pairs_f16(bytes_to_f16(w_words, w_words_1, 0x4400u, ...),
//                                    __byte_perm(scale_words.x, scale_words.x, 0x5410u));
//   ...
//
// Neighbours are read as words from shared memory. A register has the values of two terms.
// Conversions of bytes, and of bits of bytes, take both at once: bits behind the exponent of a
// number that is large enough are its last ones, and what the number is without them is subtracted.
// So do the difference of two such numbers, and a product of two exact values, which rounds once,
// as the unit would. Everything else is computed in float, term by term, and rounded.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/matrix_places.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Emits a factor for one step of one tile. References are kept. Values of variables of the program
// are others until MatrixPlaces::Reset. One thread. Cost: some simplified addresses for each
// register.
class CudaComputedFactor {
 public:
  CudaComputedFactor(const MatrixTile& tile, MatrixPlaces& places, CudaScope& scope,
                     CudaExprs& exprs, CudaBlocks& blocks, CudaNames& names,
                     CudaPreamble& preamble);

  // Emits all registers, `tiles`[number of the tile][register].
  void Emit(const std::string& tiles);

 private:
  // A register has the values of two terms.
  static constexpr int kTerms = 2;

  // Neighbouring elements in registers.
  struct Words {
    ir::Type type;
    std::string name = {};
    int count = 1;            // registers
    bool is_uniform = false;  // one element, which is that of all columns
  };
  // One element: which word, and the number of its first byte there.
  struct Element {
    std::string word = {};
    int byte = 0;
  };
  // The element of each term, and how it becomes a small number: (element >> shift & mask) +
  // offset.
  struct SmallInt {
    ir::Expr load = nullptr;
    int64_t shift = 0, mask = 0xff, offset = 0;
    bool is_signed = false;
    int64_t least() const { return offset - (is_signed ? 128 : 0); }
    int64_t most() const { return offset + (is_signed ? 127 : mask); }
  };

  // Emits the registers of one half of the terms, of a group of neighbours.
  void EmitRegisters(size_t first, int part, const std::string& tiles);
  void LoadWords(size_t first, int part, int term);
  std::optional<Words> WordsOf(ir::Expr load);
  const Words* FindWords(ir::Expr load, int term) const;
  Element ElementIn(const Words& words) const;
  // Lets the expressions be those of a term.
  void SetTerm(int term);
  // ---- texts of a register
  std::string Pair(ir::Expr value);
  std::string PairOfElements(ir::Expr load);
  std::optional<std::string> PairOfInts(ir::Expr value);
  std::optional<std::string> PairOfBits(ir::Expr integer);
  std::optional<std::string> PairOfDifference(ir::Expr integer);
  std::optional<std::string> PairOfProduct(ir::Expr value);
  std::string PairOfFloats(ir::Expr value);
  std::optional<SmallInt> SmallIntOf(ir::Expr value);
  std::optional<SmallInt> Changed(ir::Expr value, SmallInt of);
  std::optional<int64_t> ConstantOf(ir::Expr value);
  bool IsExact(ir::Expr value);
  uint16_t BitsOf(int64_t number) const;

  const MatrixTile& tile_;
  const MatrixOperand& operand_;
  MatrixPlaces& places_;
  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaBlocks& blocks_;
  CudaNames& names_;
  CudaPreamble& preamble_;
  const ir::Type type_;  // of the factor
  const std::string_view type_name_;
  int neighbours_;                            // columns or rows of a thread, read at once
  std::vector<ir::Expr> loads_;               // of the value
  std::map<std::string, std::string> known_;  // text of words -> name
  // The words of the current registers, for each term and load, and where the registers are.
  std::array<std::vector<std::optional<Words>>, kTerms> words_;
  size_t first_ = 0;
  int part_ = 0;
  int neighbour_ = 0;
};

// Device functions for pairs of these types, by their names in PTX ("f16", "bf16").
std::string PairDefinitions(const std::set<std::string_view>& types);

}  // namespace kiln::codegen
