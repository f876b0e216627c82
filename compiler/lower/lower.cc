#include "compiler/lower/lower.h"

#include <vector>

#include "compiler/lower/annotations.h"
#include "compiler/lower/bind.h"
#include "compiler/lower/bounds.h"
#include "compiler/lower/cluster_sums.h"
#include "compiler/lower/loops.h"
#include "compiler/lower/nest.h"
#include "compiler/lower/vthread.h"

namespace kiln::lower {
namespace {

// GPU: more lanes than this make code that is longer than it is fast. CPU code generation cuts long
// ones into a loop of vectors.
constexpr int64_t kMaxGpuLanes = 64, kMaxCpuLanes = 1 << 16;

std::vector<int32_t> StagesOfVars(const Bounds& bounds) {
  std::vector<int32_t> stages;
  stages.reserve(bounds.owners.size());
  for (const LoopOwner& owner : bounds.owners)
    stages.push_back(owner.stays_loop ? -1 : owner.stage);
  return stages;
}

}  // namespace

StatusOr<ir::Program> Lower(const schedule::State& original, const Options& options) {
  KILN_ASSIGN_OR_RETURN(const schedule::State state,
                        options.gpu ? BindUnbound(original) : StatusOr<schedule::State>(original));
  KILN_RETURN_IF_ERROR(CheckAnnotations(state, options.gpu));
  // Regions, loop extents, axis values; inlining happens wherever a body is read.
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Bounds> bounds,
                        InferBounds(state, options.gpu, options.stop));
  // Attach points, buffers, initialisation and guards.
  KILN_ASSIGN_OR_RETURN(ir::Program program, BuildNests(state, *bounds, options.gpu, options.stop));
  if (options.gpu) InjectVThreads(program);
  // Before stores become vectors: what is between the two loops is in registers still.
  if (options.gpu) SumBeforeStoring(program);
  // From here on only the kinds of loops change, and which one around a store is innermost.
  // Vectorized loops first: one that becomes serial may be unrolled.
  SerializeNestedParallel(program);
  LegalizeVectorized(program, options.gpu ? kMaxGpuLanes : kMaxCpuLanes);
  if (options.gpu) {
    VectorizeStores(program, kMaxGpuLanes);
    VectorizeLoads(program, kMaxGpuLanes);
  }
  AutoUnroll(program, StagesOfVars(*bounds));
  return program;
}

StatusOr<schedule::State> FillExtents(const schedule::State& state, const std::stop_token& stop) {
  // Bound loops of a GPU state keep their own extents; sharing of variables does not change
  // extents.
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Bounds> bounds, InferBounds(state, /*gpu=*/true, stop));
  schedule::State result = state;
  for (int s = 0; s < state.num_stages(); ++s) {
    if (bounds->stages[s].computed) result.SetExtents(s, bounds->stages[s].iter_extents);
  }
  return result;
}

}  // namespace kiln::lower
