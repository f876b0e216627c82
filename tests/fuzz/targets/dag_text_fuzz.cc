// Parses computations in text form. A computation that parses prints as a text that parses to the
// same, has keys and an identity, can be sampled, and its plain loops compute what it says.
#include "compiler/dag/input_facts.h"
#include "compiler/dag/sample_outputs.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"

namespace kiln::fuzz {
namespace {

constexpr double kMostWork = 2000;
// Sampling computations of more operators takes a while.
constexpr int kMostSampledOperators = 4;

void CheckText(const dag::DagText& text) {
  const std::string printed = dag::PrintDag(*text.dag, text.ranges);
  const StatusOr<dag::DagText> parsed = dag::ParseDagText(printed);
  KILN_CHECK(parsed.ok(), "{}\n{}", Message(parsed.status()), printed);
  KILN_CHECK(dag::PrintDag(*parsed->dag, parsed->ranges) == printed, "{}\nas\n{}", printed,
             dag::PrintDag(*parsed->dag, parsed->ranges));
  KILN_CHECK(dag::WorkloadId(*parsed->dag) == dag::WorkloadId(*text.dag), "{}", printed);
  KILN_CHECK(dag::WorkloadKeys(*parsed->dag) == dag::WorkloadKeys(*text.dag), "{}", printed);
}

void CheckKeys(const dag::Dag& dag) {
  const std::string key = dag::WorkloadKey(dag);
  KILN_CHECK(dag::NormalizedKey(key) == key, "{} as {}", key, dag::NormalizedKey(key));
  const dag::DecodedKey decoded = dag::DecodeWorkloadKey(key);
  KILN_CHECK(decoded.name == dag::DagHash(dag), "{}", key);
  KILN_CHECK(dag::WorkloadDistance(decoded, decoded) == 1, "{}", key);
}

void CheckSample(const dag::DagText& text) {
  if (text.dag->size() > kMostSampledOperators) return;
  const auto sampled = dag::SampleOutputs(text, {.grid_elements = 16});
  if (!sampled.ok()) return CheckRefusal(sampled.status());
  const std::string printed = dag::PrintDag(*sampled->text.dag, sampled->text.ranges);
  const auto parsed = dag::ParseDagText(printed);
  KILN_CHECK(parsed.ok(), "{}\n{}", Message(parsed.status()), printed);
  const Status same = dag::CheckSameInputs(text, *parsed);
  KILN_CHECK(same.ok(), "{}\n{}", Message(same), printed);
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
  fuzz::CheckText(*text);
  fuzz::CheckKeys(*text->dag);
  fuzz::CheckSample(*text);
  fuzz::CheckLowered(schedule::State(text->dag), /*gpu=*/false, fuzz::kMostWork);
  return 0;
}
