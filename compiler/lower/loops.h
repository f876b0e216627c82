// Passes that only change the kinds of loops.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// Makes a parallel loop inside a parallel, vectorized or unrolled loop serial: parallel regions do
// not nest.
void SerializeNestedParallel(ir::Program& program);

// Makes a vectorized loop serial when its body is more than stores, conditions and plain loops (an
// allocation, another vectorized loop), or when it has more than `max_lanes` iterations.
void LegalizeVectorized(ir::Program& program, int64_t max_lanes);

// Vectorizes loops of at most `max_lanes` iterations that store registers to consecutive elements
// of global memory: what a thread has computed goes out 16 bytes at once. Such a loop becomes the
// innermost of those around the store. For GPUs, whose code generator goes lane by lane where
// elements turn out not to be aligned.
void VectorizeStores(ir::Program& program, int64_t max_lanes);

// Vectorizes loops of at most `max_lanes` iterations that accumulate in registers what is
// consecutive in global memory: terms are read 16 bytes at once, and added one after the other. A
// loop over several results becomes the innermost one; a loop over the terms of one has to be it,
// so that the order of the terms stays. For GPUs.
void VectorizeLoads(ir::Program& program, int64_t max_lanes);

// Unrolls serial loops from the innermost outward while the unrolled body has at most
// Hint::kUnroll stores, taken from the stage whose loop it is (stage_of_var[v] is an index
// into Program::stages; -1: such loops stay). The rule is that of the predecessor's UnrollLoop pass
// with explicit unrolling and depth at most 8: a vectorized loop counts as one step, and a loop
// around one that was not unrolled is not unrolled either.
void AutoUnroll(ir::Program& program, std::span<const int32_t> stage_of_var);

}  // namespace kiln::lower
