#include "compiler/lower/lower.h"

#include <vector>

#include "compiler/lower/annotations.h"
#include "compiler/lower/bind.h"
#include "compiler/lower/bounds.h"
#include "compiler/lower/cluster_sums.h"
#include "compiler/lower/early_loads.h"
#include "compiler/lower/loops.h"
#include "compiler/lower/nest.h"
#include "compiler/lower/online_softmax.h"
#include "compiler/lower/partial_sums.h"
#include "compiler/lower/separate_sums.h"
#include "compiler/lower/summing_threads.h"
#include "compiler/lower/vthread.h"

namespace kiln::lower {
namespace {

// More lanes than this make GPU code longer but not faster. CPU code generation cuts long vectors
// into a loop of vectors.
constexpr int64_t kMaxGpuLanes = 64, kMaxCpuLanes = 1 << 16;

std::vector<int32_t> StagesOfVars(const Bounds& bounds) {
  std::vector<int32_t> stages;
  stages.reserve(bounds.owners.size());
  for (const LoopOwner& owner : bounds.owners)
    stages.push_back(owner.stays_loop ? -1 : owner.stage);
  return stages;
}

StatusOr<ir::Program> LowerOnlineSoftmax(const schedule::State& state, const Options& options) {
  const int stage = state.num_stages() - 1;
  if (!options.gpu || !state.concrete()) {
    return FailedPrecondition("stage {} ({}): its online softmax {}", stage,
                              state.stage(stage).op->name(),
                              options.gpu ? "has blanks; expected a tile" : "is for GPUs only");
  }
  ir::PassRunner passes(options.instruments);
  KILN_ASSIGN_OR_RETURN(ir::Program program,
                        passes.Time("online-softmax", [&] { return BuildOnlineSoftmax(state); }));
  // This run also verifies the program that was built.
  KILN_RETURN_IF_ERROR(passes.Run("legalize-loops", program,
                                  [](ir::Program& p) { LegalizeVectorized(p, kMaxGpuLanes); }));
  return program;
}

}  // namespace

StatusOr<ir::Program> Lower(const schedule::State& original, const Options& options) {
  if (original.online() != nullptr) return LowerOnlineSoftmax(original, options);
  const bool gpu = options.gpu;
  ir::PassRunner passes(options.instruments);
  KILN_ASSIGN_OR_RETURN(const schedule::State state,
                        gpu ? BindUnbound(original) : StatusOr<schedule::State>(original));
  KILN_RETURN_IF_ERROR(CheckAnnotations(state, gpu));
  // Finds regions, loop extents and axis values. A stage is inlined wherever its body is read.
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Bounds> bounds, passes.Time("infer-bounds", [&] {
    return InferBounds(state, gpu, options.stop);
  }));
  // Makes attached stages, buffers, initialisations and guards.
  KILN_ASSIGN_OR_RETURN(ir::Program program, passes.Time("build-nests", [&] {
    return BuildNests(state, *bounds, gpu, options.stop);
  }));
  if (gpu) KILN_RETURN_IF_ERROR(CheckSummingThreads(program));
  const auto run = [&](std::string_view name, absl::FunctionRef<void(ir::Program&)> pass) {
    return passes.Run(name, program, pass);
  };
  // Removes forms that schedules may have and programs may not: ir::Verify accepts the result of
  // these two.
  KILN_RETURN_IF_ERROR(run("legalize-loops", [&](ir::Program& p) {
    SerializeNestedParallel(p);
    LegalizeVectorized(p, gpu ? kMaxGpuLanes : kMaxCpuLanes);
  }));
  if (gpu) {
    KILN_RETURN_IF_ERROR(
        run("separate-sums", [&](ir::Program& p) { SeparateSums(p, bounds->owners); }));
  }
  if (gpu) KILN_RETURN_IF_ERROR(run("inject-vthreads", InjectVThreads));
  // Must come before stores become vectors, while the values between the two loops are still in
  // registers.
  if (gpu) KILN_RETURN_IF_ERROR(run("sum-before-storing", SumBeforeStoring));
  if (gpu) KILN_RETURN_IF_ERROR(run("load-before-sums", LoadBeforeSums));
  // The remaining passes only change the kinds of loops, and which loop around a store is
  // innermost.
  if (gpu) {
    KILN_RETURN_IF_ERROR(
        run("vectorize-stores", [](ir::Program& p) { VectorizeStores(p, kMaxGpuLanes); }));
    KILN_RETURN_IF_ERROR(run("swizzle-partial-sums", SwizzlePartialSums));
    KILN_RETURN_IF_ERROR(
        run("vectorize-loads", [](ir::Program& p) { VectorizeLoads(p, kMaxGpuLanes); }));
  }
  KILN_RETURN_IF_ERROR(
      run("auto-unroll", [&](ir::Program& p) { AutoUnroll(p, StagesOfVars(*bounds)); }));
  return program;
}

StatusOr<schedule::State> FillExtents(schedule::State state, const std::stop_token& stop) {
  // The loops of such a state depend on no region.
  if (state.online() != nullptr) return state;
  // Bound loops of a GPU state keep their own extents. Sharing of variables does not change
  // extents.
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Bounds> bounds,
                        InferExtents(state, /*gpu=*/true, stop));
  for (int s = 0; s < state.num_stages(); ++s) {
    if (bounds->stages[s].computed) state.SetExtents(s, bounds->stages[s].iter_extents);
  }
  return state;
}

}  // namespace kiln::lower
