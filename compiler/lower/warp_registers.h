// Buffers in shared memory that need none: the threads of a warp exchange what they hold in
// registers. Programs say what each thread stores and reads, with barriers of warps between
// (ir/program.h); code generators and checks ask here what becomes of it.
//
//   * Pairs. Each thread stores two neighbours after the other, and the only readers are products
//     by matrix units, as their first factor. Of that a thread has rows t/4 and neighbours 2 (t%4)
//     of each 8 terms (PTX ISA, "Matrix Fragments for mma.m16n8k16"; four warps together have the
//     same, one after the other): where that is what it stored itself, a pair is a register of the
//     instruction.
//   * Rows. Thread t stores one element as number t%4 of a row that belongs to it and its three
//     neighbours, and all four combine the four: two steps of shuffles.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::lower {

// Which of a thread's registers an element is in: a sum of loop variables times these.
using RegisterNumber = std::vector<std::pair<int32_t, int64_t>>;

struct HeldPairs {
  struct Stored {
    ir::Stmt store = nullptr;  // in the loop over the two of a pair
    int32_t pair_var = -1;
    RegisterNumber number;
  };
  struct Read {
    ir::Stmt reader = nullptr;  // the sum of a tile
    int32_t term_var = -1;      // of the terms of the sum
    std::vector<int32_t> row_vars;
    // [values of row_vars, first of 8 terms] -> number
    std::map<std::pair<std::vector<int64_t>, int64_t>, int64_t> register_of;
  };
  int64_t registers = 0;
  std::vector<Stored> stores;
  std::vector<Read> reads;

  // Null: it is none of them.
  const Stored* StoredBy(ir::Stmt store) const;
  const Read* ReadBy(ir::Stmt reader) const;
};

struct HeldRows {
  struct Exchange {
    ir::Stmt store = nullptr, reader = nullptr;
    RegisterNumber stored, read;
    ir::Op combine = ir::Op::kAdd;  // or kMax, kMin, ...
  };
  int64_t registers = 0;
  std::vector<Exchange> exchanges;
};

struct WarpRegisters {
  std::map<int32_t, HeldPairs> pairs;  // [buffer]
  std::map<int32_t, HeldRows> rows;
  // All that is stored in shared memory but by asynchronous copies is held: barriers of warps have
  // nothing to order.
  bool is_all = false;

  bool Holds(int32_t slot) const { return pairs.contains(slot) || rows.contains(slot); }
};

// Nothing for kernels without barriers of warps. Pure. Cost: some simplified addresses for each
// register.
WarpRegisters FindWarpRegisters(const ir::Program& program, const ir::Kernel& kernel);

}  // namespace kiln::lower
