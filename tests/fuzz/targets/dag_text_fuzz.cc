// Parses computations in text form. A computation that parses prints as a text that parses to the
// same, has keys and an identity, can be sampled, and its plain loops compute what it says.
#include <string>

#include "compiler/dag/input_facts.h"
#include "compiler/dag/sample_outputs.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "search/choice/workload_distance.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

constexpr double kMaxWork = 2000;
// Sampling computations of more operators takes a while.
constexpr int kMaxSampledOperators = 4;

std::string Print(const dag::DagText& text) { return dag::PrintDag(*text.dag, text.ranges); }

StatusOr<dag::DagText> Parse(const std::string& text) { return dag::ParseDagText(text); }

bool HaveSameNames(const dag::DagText& a, const dag::DagText& b) {
  return dag::WorkloadId(*a.dag) == dag::WorkloadId(*b.dag) &&
         dag::WorkloadKeys(*a.dag) == dag::WorkloadKeys(*b.dag);
}

void CheckKeys(const dag::Dag& dag) {
  const std::string key = dag::WorkloadKey(dag);
  KILN_CHECK(dag::NormalizedKey(key) == key, "{} as {}", key, dag::NormalizedKey(key));
  KILN_CHECK(search::WorkloadHash(key) == dag::DagHash(dag), "{}", key);
  KILN_CHECK(search::WorkloadDistance(key, key) == 1, "{}", key);
}

void CheckSample(const dag::DagText& text) {
  if (text.dag->size() > kMaxSampledOperators) return;
  const auto sampled = dag::SampleOutputs(text, {.grid_elements = 16});
  if (!sampled.ok()) return CheckRefusal(sampled.status());
  const dag::DagText parsed = CheckRoundTrip(sampled->text, Print, Parse, HaveSameNames);
  const Status same = dag::CheckSameInputs(text, parsed);
  KILN_CHECK(same.ok(), "{}\n{}", Message(same), Print(parsed));
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  const auto text = dag::ParseDagText(fuzz::InputText(data, size));
  if (!text.ok()) {
    fuzz::CheckRefusal(text.status());
    return 0;
  }
  fuzz::CheckRoundTrip(*text, fuzz::Print, fuzz::Parse, fuzz::HaveSameNames);
  fuzz::CheckKeys(*text->dag);
  fuzz::CheckSample(*text);
  fuzz::CheckLowered(schedule::State(text->dag), /*gpu=*/false, fuzz::kMaxWork);
  return 0;
}
