// Buffers in shared memory that need no memory, because the threads of a warp exchange values that
// they hold in registers. Programs say what each thread stores and reads, with barriers of warps
// between (ir/program.h). Code generators and checks use the functions here to find such buffers.
//
//   * Pairs. Each thread stores pairs of neighbours, and the only readers are products by matrix
//     units, as their first factor. Of that factor a thread has rows t/4 and neighbours 2 (t%4) of
//     each 8 terms (PTX ISA, "Matrix Fragments for mma.m16n8k16"; four warps together have the
//     same, one after the other). If the thread stored those elements itself, a pair is a register
//     of the instruction.
//   * Rows. Thread t stores one element as number t%4 of a row that belongs to it and its three
//     neighbours, and all four threads combine the four elements: two steps of shuffles.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::lower {

// The number of a thread's register that holds an element: a sum of loop variables times these
// factors.
using RegisterNumber = std::vector<std::pair<int32_t, int64_t>>;

struct HeldPairs {
  struct Stored {
    // The store in the loop over the two elements of a pair.
    ir::Stmt store = nullptr;
    int32_t pair_var = -1;
    RegisterNumber number;
  };
  struct Read {
    // The sum of a tile.
    ir::Stmt reader = nullptr;
    // Variable of the terms of the sum.
    int32_t term_var = -1;
    std::vector<int32_t> row_vars;
    // Maps (values of row_vars, first of 8 terms) to the number of the register.
    std::map<std::pair<std::vector<int64_t>, int64_t>, int64_t> register_of;
  };
  int64_t registers = 0;
  std::vector<Stored> stores;
  std::vector<Read> reads;

  // Return null if the statement is none of them.
  const Stored* StoredBy(ir::Stmt store) const;
  const Read* ReadBy(ir::Stmt reader) const;
};

struct HeldRows {
  struct Exchange {
    ir::Stmt store = nullptr, reader = nullptr;
    RegisterNumber stored, read;
    // May also be kMax, kMin, ...
    ir::Op combine = ir::Op::kAdd;
  };
  int64_t registers = 0;
  std::vector<Exchange> exchanges;
};

struct WarpRegisters {
  // Indexed by buffer.
  std::map<int32_t, HeldPairs> pairs;
  std::map<int32_t, HeldRows> rows;
  // True if all values that are stored in shared memory, except by asynchronous copies, are held in
  // registers. Barriers of warps then have nothing to order.
  bool is_all = false;

  bool Holds(int32_t slot) const { return pairs.contains(slot) || rows.contains(slot); }
};

// Returns nothing for kernels without barriers of warps. Pure. Cost: some simplified addresses for
// each register.
WarpRegisters FindWarpRegisters(const ir::Program& program, const ir::Kernel& kernel);

}  // namespace kiln::lower
