// A long row in shared memory. The reductions of a row and the stage that reads their results, as
// those of log_softmax, read the row several times. A block fetches the row once for all of them.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/lower/lower.h"
#include "compiler/schedule/buffer_shape.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Attach;
using schedule::State;

// The cache of a multiprocessor has room for shorter rows of several blocks.
constexpr int64_t kLeastRowBytes = 32 << 10;
// Bytes of shared memory in which the warps of a block exchange their results.
constexpr int64_t kBytesOfResults = 2 << 10;

class KeptRows final : public SketchRule {
 public:
  std::string_view name() const override { return "row in shared memory"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    if (!context.parameters.vary_thread_counts || !state.stage(s).is_placeholder())
      return RuleAnswer::kSkip;
    const std::optional<Attach> place = PlaceOf(state, s);
    if (!place) return RuleAnswer::kSkip;
    const std::optional<int64_t> bytes = RowBytes(WithRow(state, s, *place), s + 1);
    const int64_t most = context.task.hardware.max_shared_memory_per_block_bytes - kBytesOfResults;
    return bytes && *bytes >= kLeastRowBytes && *bytes <= most ? RuleAnswer::kApply
                                                               : RuleAnswer::kSkip;
  }

  NextStates Apply(const RuleContext&, State state, int s) const override {
    const Attach place = *PlaceOf(state, s);
    return One(WithRow(std::move(state), s, place), s - 1);
  }

 private:
  // Returns the loop of a block in which all readers of s are computed, if threads reduce rows there
  // and s is read more than once.
  static std::optional<Attach> PlaceOf(const State& state, int s) {
    const std::vector<int> readers = state.Consumers(s);
    const auto inside = std::ranges::find_if(
        readers, [&](int reader) { return state.attach(reader).kind == Attach::kIter; });
    if (readers.size() < 2 || inside == readers.end()) return std::nullopt;
    const Attach place = state.attach(*inside);
    if (state.attach(place.stage).kind != Attach::kRoot ||
        HasReduceLoop(state.stage(place.stage)) || !HasCrossThreadReduction(state, place.stage))
      return std::nullopt;
    const bool are_inside = std::ranges::all_of(readers, [&](int reader) {
      return reader == place.stage ||
             (state.attach(reader) == place && HasCrossThreadReduction(state, reader));
    });
    return are_inside ? std::optional(place) : std::nullopt;
  }

  // Adds the row, which is stage s + 1 then.
  static State WithRow(State state, int s, const Attach& place) {
    MustApply(state,
              std::make_shared<schedule::CacheReadStep>(s, "shared", state.dag()->consumers(s)));
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s + 1, place.stage + 1, place.loop));
    return state;
  }

  // Returns the bytes of the row, if the loops around it have known extents.
  static std::optional<int64_t> RowBytes(State state, int row) {
    const StatusOr<State> filled = lower::FillExtents(std::move(state));
    if (!filled.ok()) return std::nullopt;
    int64_t bytes = filled->stage(row).op->type().bytes();
    for (const int64_t extent : schedule::RegionOf(filled->stage(row))) bytes *= extent;
    return bytes;
  }
};

}  // namespace

SketchRulePtr KeptRowsRule() { return std::make_unique<KeptRows>(); }

}  // namespace kiln::search
