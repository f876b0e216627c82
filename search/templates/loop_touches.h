// How the loops of a program touch its buffers: what the features of loops (loop_features.h) and of
// curves (curve_features.h) are made of, as autotvm's TouchExtractor (TVM v0.8,
// src/autotvm/touch_extractor.cc).
//
// An access is a load or a store that stands in the program. It is called by its buffer and its
// number among those of the buffer, in the order of the program: A_0, A_1.
//
// Loops of one iteration are no loops in a program; autotvm keeps them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::search {

// How one loop moves one access. Counts are those of all iterations from this loop on, inwards.
struct Touch {
  double stride = 0, mod = -1;
  double count = 1;  // of elements
  double reuse = 1;  // how often each is touched
  // What one thread does of it; of a loop of threads or blocks.
  double thread_count = 0, thread_reuse = 0;
};

struct TouchedLoop {
  double extent = 1;
  double topdown = 1;    // product of the extents of the loops down to this one
  double bottomup = -1;  // the most touches of an access in it
  int depth = 0;
  ir::LoopKind kind = ir::LoopKind::kSerial;
  int adds = 0, multiplies = 0, divides = 0;  // directly in it
  std::map<std::string, Touch> touches;       // by access
};

struct BufferAccess {
  int32_t buffer = -1;  // of the program
  int order = 0;        // among all accesses of the program
};

struct LoopTouches {
  std::vector<TouchedLoop> loops;  // in the order of the program
  std::map<std::string, BufferAccess> accesses;
};

// Cost: linear in loops times accesses.
LoopTouches FindTouches(const ir::Program& program);

}  // namespace kiln::search
