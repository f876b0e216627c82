// Parses templates as text. A template that parses prints as a text that parses to the same. For a
// computation it makes a space, or says why not. Each point of the space is a schedule that
// replays, or is refused.
#include <string>

#include "base/numbers/rng.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/schedule/step.h"
#include "search/templates/template.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

constexpr size_t kMaxBytes = 4096;
constexpr int kPoints = 3;

const dag::DagPtr& Computation(size_t number) {
  static const dag::DagPtr kComputations[] = {
      *dag::BuildOp("dense", "12,18,24", {.epilogue = {"bias"}}),
      *dag::BuildOp("conv2d_nchw", "1,8,8,12,6,3,3,1,1"),
  };
  return kComputations[number % std::size(kComputations)];
}

void CheckPoint(const search::Template& made, const dag::DagPtr& dag,
                const search::ConfigSpace& space, int64_t index) {
  const search::Config config = space.Get(index);
  const auto found = space.IndexOf(config.entities);
  // Lists of candidates may name one value twice.
  KILN_CHECK(found.ok() && space.Get(*found).entities == config.entities, "index {}", index);
  const auto instance = made.Instantiate(dag, config);
  if (!instance.ok()) return CheckRefusal(instance.status());
  const schedule::State* const state = &instance->state.value();
  KILN_CHECK(schedule::Replay(dag, state->steps()).ok(), "{}",
             schedule::PrintSteps(state->steps()));
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  if (size > fuzz::kMaxBytes) return -1;
  const auto parsed = search::ParseTemplate(fuzz::InputText(data, size));
  if (!parsed.ok()) {
    fuzz::CheckRefusal(parsed.status());
    KILN_CHECK(Message(parsed.status()).starts_with("line "), "{}", Message(parsed.status()));
    return 0;
  }
  fuzz::CheckRoundTrip(*parsed, search::PrintTemplate, search::ParseTemplate);
  const search::TextTemplate made(*parsed);
  const dag::DagPtr& dag = fuzz::Computation(size);
  const auto space = made.Space(dag);
  if (!space.ok()) {
    fuzz::CheckRefusal(space.status());
    return 0;
  }
  Rng rng(size);
  for (int i = 0; i < fuzz::kPoints; ++i) {
    const auto index = space->Random(rng);
    if (!index) break;
    fuzz::CheckPoint(made, dag, *space, *index);
  }
  return 0;
}
