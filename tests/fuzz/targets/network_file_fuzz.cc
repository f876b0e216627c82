// Reads files of compiled networks. The bytes are refused, or are a network that prints as the
// manifest that it was read from, whose buffers can be placed again and whose kernels have an
// order. An input is taken as a whole file, and as the manifest of a file whose header is right and
// whose other bytes are zeros.
#include <string>

#include "runtime/kernel_order.h"
#include "runtime/network_file.h"
#include "runtime/network_testing.h"
#include "runtime/place_buffers.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

// Checks that later kernels wait for earlier ones, and that each stream that is used is joined.
void CheckStreams(const runtime::Network& network) {
  const runtime::StreamPlan plan = runtime::PlanStreams(network, 3);
  KILN_CHECK(plan.steps.size() == network.kernels.size());
  KILN_CHECK(plan.streams >= 1 && plan.streams <= 3);
  KILN_CHECK(static_cast<int>(plan.joins.size()) == plan.streams - 1);
  for (size_t k = 0; k < plan.steps.size(); ++k) {
    for (int32_t before : plan.steps[k].waits) {
      KILN_CHECK(before >= 0 && static_cast<size_t>(before) < k);
      KILN_CHECK(plan.steps[static_cast<size_t>(before)].awaited);
    }
  }
}

void CheckAccepted(const runtime::NetworkFile& file) {
  CheckRoundTrip(file.manifest(), runtime::PrintManifest, runtime::ParseManifest, SameText());
  KILN_CHECK(static_cast<int64_t>(file.constants().size()) == file.network().constants_bytes);
  CheckStreams(file.network());
  runtime::Network placed = file.network();
  const auto memory = runtime::PlaceBuffers(placed);
  // A network whose memory was planned better does not fit then.
  if (!memory.ok()) return CheckRefusal(memory.status());
  KILN_CHECK(memory->peak_bytes <= memory->arena_bytes);
}

void CheckFile(std::string_view bytes) {
  const auto file = runtime::NetworkFile::FromBytes(runtime::AsBytes(bytes));
  if (!file.ok()) return CheckRefusal(file.status());
  CheckAccepted(**file);
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  const std::string_view bytes = fuzz::InputText(data, size);
  fuzz::CheckFile(bytes);
  fuzz::CheckFile(runtime::SealedFile(bytes, std::string(runtime::kZeroBodyBytes, '\0')));
  return 0;
}
