// Finds how the loops of a program touch its buffers, like autotvm's TouchExtractor (TVM v0.8,
// src/autotvm/touch_extractor.cc). The features of loops (loop_features.h) and of curves
// (curve_features.h) are made from the result.
//
// An access is a load or a store that stands in the program. Its name is the buffer's name and the
// access's number among those of the buffer, in the order of the program: A_0, A_1.
//
// Loops of one iteration do not exist in a program; autotvm keeps them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::search {

// The movement of one access by one loop. Counts cover all iterations from this loop on, inwards.
struct Touch {
  double stride = 0, mod = -1;
  double count = 1;  // number of elements
  double reuse = 1;  // how often each element is touched
  // The same for the part of one thread. Set for loops of threads or blocks.
  double thread_count = 0, thread_reuse = 0;
};

struct TouchedLoop {
  double extent = 1;
  double topdown = 1;    // product of the extents of the loops down to this one
  double bottomup = -1;  // the most touches of an access in this loop
  int depth = 0;
  ir::LoopKind kind = ir::LoopKind::kSerial;
  int adds = 0, multiplies = 0, divides = 0;  // directly in this loop
  std::map<std::string, Touch> touches;       // key: access
};

struct BufferAccess {
  int32_t buffer = -1;  // index in the program
  int order = 0;        // position among all accesses of the program
};

struct LoopTouches {
  std::vector<TouchedLoop> loops;  // in the order of the program
  std::map<std::string, BufferAccess> accesses;
};

// Cost: linear in loops times accesses.
LoopTouches FindTouches(const ir::Program& program);

}  // namespace kiln::search
