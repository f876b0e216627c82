// Passes that only change the kinds of loops.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// Makes a parallel loop inside a parallel, vectorized or unrolled loop serial, because parallel
// regions do not nest.
void SerializeNestedParallel(ir::Program& program);

// Makes a vectorized loop serial if its body is more than stores, conditions and plain loops (an
// allocation, another vectorized loop), or if it has more than `max_lanes` iterations.
void LegalizeVectorized(ir::Program& program, int64_t max_lanes);

// Vectorizes loops of at most `max_lanes` iterations that store registers to consecutive elements
// of global memory, so that a thread stores up to 16 bytes at once. Such a loop becomes the
// innermost one around the store, or around the stores of a stage with several outputs. For GPUs:
// if elements turn out not to be aligned, the code generator stores lane by lane.
// generator stores lane by lane.
void VectorizeStores(ir::Program& program, int64_t max_lanes);

// Vectorizes loops of at most `max_lanes` iterations that add consecutive elements of global memory
// to sums in registers, of one value or of several ones: terms are read up to 16 bytes at once, and
// added one after the other. A
// loop over several sums becomes the innermost one. A loop over the terms of one sum is only
// vectorized if it is innermost already, so that the order of the terms stays. For GPUs.
void VectorizeLoads(ir::Program& program, int64_t max_lanes);

// Unrolls serial loops from the innermost outward while the unrolled body has at most Hint::kUnroll
// stores. The hint is that of the stage that owns the loop (stage_of_var[v] is an index into
// Program::stages; loops with -1 stay). The rule is that of TVM's UnrollLoop pass (TVM v0.14,
// src/tir/transforms/unroll_loop.cc) with explicit unrolling and depth at most 8: a vectorized loop
// counts as one step, and a loop around one that was not unrolled is not unrolled either.
void AutoUnroll(ir::Program& program, std::span<const int32_t> stage_of_var);

}  // namespace kiln::lower
