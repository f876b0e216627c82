#include "search/templates/loop_features.h"

#include <cmath>

#include "search/templates/loop_touches.h"

namespace kiln::search {
namespace {

using ir::LoopKind;

constexpr int kKinds = 11;

// Returns the kind's place among autotvm's 11 kinds of loops.
int PlaceOf(LoopKind kind) {
  switch (kind) {
    case LoopKind::kBlockX:
      return 0;
    case LoopKind::kBlockY:
      return 1;
    case LoopKind::kBlockZ:
      return 2;
    case LoopKind::kThreadX:
      return 3;
    case LoopKind::kThreadY:
      return 4;
    case LoopKind::kThreadZ:
      return 5;
    case LoopKind::kUnrolled:
      return 6;
    case LoopKind::kVectorized:
      return 7;
    case LoopKind::kParallel:
      return 8;
    case LoopKind::kSerial:
    case LoopKind::kCluster:
      return 9;
    case LoopKind::kVThread:
      return 10;
  }
  return 9;
}

float SignedLog(double x) {
  return static_cast<float>(std::copysign(std::log2(std::abs(x) + 1), x));
}

}  // namespace

std::vector<float> LoopFeatures(const ir::Program& program) {
  std::vector<float> row;
  const auto log = [](double x) { return static_cast<float>(std::log2(x + 1)); };
  for (const TouchedLoop& loop : FindTouches(program).loops) {
    row.insert(row.end(), {log(loop.extent), static_cast<float>(loop.depth), log(loop.topdown),
                           SignedLog(loop.bottomup)});
    for (int place = 0; place < kKinds; ++place)
      row.push_back(place == PlaceOf(loop.kind) ? 1.0F : 0.0F);
    for (const int count : {loop.adds, loop.multiplies, loop.divides}) row.push_back(log(count));
    for (const auto& [access, t] : loop.touches) {
      for (const double number :
           {t.stride, t.mod, t.count, t.reuse, t.thread_count, t.thread_reuse})
        row.push_back(SignedLog(number));
    }
  }
  return row;
}

}  // namespace kiln::search
