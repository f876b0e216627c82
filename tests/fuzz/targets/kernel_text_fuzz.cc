// Parses texts of kernels that people wrote, with their sources. A text that parses prints as a
// text that parses to the same. For a computation, its own or another one, it makes a space, or
// says why not. Each point of the space is a source with the numbers of its launch, or is refused,
// and prints and parses as records keep it.
#include <string>

#include "base/numbers/rng.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/handwritten/computation.h"
#include "compiler/handwritten/specialization.h"
#include "search/templates/kernel_template.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

constexpr size_t kMaxBytes = 4096;
constexpr int kPoints = 3;

void CheckPoint(const search::KernelTemplate& made, const dag::DagPtr& dag,
                const search::Config& config) {
  const auto instance = made.Instantiate(dag, config);
  if (!instance.ok()) return CheckRefusal(instance.status());
  const handwritten::KernelPoint again = CheckRoundTrip(
      *instance->kernel, handwritten::PrintKernelPoint, handwritten::ParseKernelPoint);
  const std::string printed = handwritten::PrintKernelPoint(again);
  const auto kernel = handwritten::Specialize(made.text(), *dag, again.values);
  KILN_CHECK(kernel.ok(), "{}: {}", printed, Message(kernel.status()));
  for (size_t i = 0; i < 3; ++i)
    KILN_CHECK(kernel->grid[i] >= 1 && kernel->block[i] >= 1, "{}", printed);
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  if (size > fuzz::kMaxBytes) return -1;
  const auto parsed = handwritten::ParseKernelText(fuzz::InputText(data, size));
  if (!parsed.ok()) {
    fuzz::CheckRefusal(parsed.status());
    KILN_CHECK(Message(parsed.status()).starts_with("line "), "{}", Message(parsed.status()));
    return 0;
  }
  const handwritten::KernelText again =
      fuzz::CheckRoundTrip(*parsed, handwritten::PrintKernelText, handwritten::ParseKernelText);
  const std::string printed = handwritten::PrintKernelText(again);
  KILN_CHECK(handwritten::KernelDigest(again) == handwritten::KernelDigest(*parsed), "{}", printed);
  dag::DagPtr dag = *dag::BuildOp("matmul", "12,18,24");
  if (parsed->reference) {
    const auto declared = handwritten::DeclaredComputation(*parsed);
    if (!declared.ok()) {
      fuzz::CheckRefusal(declared.status());
      return 0;
    }
    dag = *declared;
  }
  KILN_CHECK(handwritten::TaggedComputation(*parsed, dag).ok(), "{}", printed);
  const search::KernelTemplate made(*parsed);
  const auto space = made.Space(dag);
  if (!space.ok()) {
    fuzz::CheckRefusal(space.status());
    return 0;
  }
  Rng rng(size);
  for (int i = 0; i < fuzz::kPoints; ++i) {
    const auto index = space->Random(rng);
    if (!index) break;
    fuzz::CheckPoint(made, dag, space->Get(*index));
  }
  return 0;
}
