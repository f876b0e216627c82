// Calls a runner of the null device, which has no children. Also checks how a runner's child
// handles the launch plans and samples of a request before it runs anything.
#include <string>

#include "base/status.h"
#include "rpc/artifact_digest.h"
#include "runner/arguments.h"
#include "runner/output_sample.h"
#include "runner/service.h"
#include "tests/fuzz/targets/calls.h"
#include "tests/fuzz/targets/calls.pb.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"

namespace kiln::fuzz {
namespace {

constexpr int kMaxCalls = 8;
constexpr int64_t kMaxBytes = 1 << 16;

void FillDigests(v1::MeasureRequest& request) {
  if (request.has_artifact() && request.artifact().digest().empty()) {
    request.mutable_artifact()->set_digest(DigestOf(request.artifact()));
  }
  if (request.has_reference() && request.reference_digest().empty()) {
    request.set_reference_digest(DigestOf(request.reference()));
  }
}

void CheckSamples(const v1::MeasureRequest& request, const std::vector<runner::Argument>& program,
                  const std::vector<runner::Argument>& reference) {
  const auto samples = runner::ParseSamples(request.samples(), program, reference);
  if (!samples.ok()) return CheckRefusal(samples.status());
  const auto outputs = runner::OfRole(program, v1::ArgSpec::OUTPUT);
  for (const runner::SampledOutput& sample : *samples) {
    const runner::Argument& output = *outputs[static_cast<size_t>(sample.output)];
    if (output.bytes > kMaxBytes) continue;
    const std::vector<std::byte> bytes(static_cast<size_t>(output.bytes));
    const runner::PrivateBytes gathered = runner::Gather(sample, output, bytes);
    KILN_CHECK(static_cast<int64_t>(gathered.size()) == sample.argument.bytes);
  }
}

void CheckPlans(const v1::MeasureRequest& request) {
  const auto program = runner::ParseArguments(request.artifact().plan());
  if (!program.ok()) return CheckRefusal(program.status());
  int ordinal = 0;
  for (const runner::Argument& argument : *program) {
    KILN_CHECK(!argument.name.empty() && !runner::TypeText(argument).empty());
    KILN_CHECK(argument.bytes > 0 && argument.elements > 0, "{}", argument.name);
    KILN_CHECK(!runner::InputKey(argument, ordinal++, request.seed()).empty());
  }
  KILN_CHECK(runner::CheckSameInterface(*program, *program).ok());
  const auto reference = runner::ParseArguments(request.reference().plan());
  if (!reference.ok()) return CheckRefusal(reference.status());
  const Status same = runner::CheckSameInterface(*program, *reference);
  if (!same.ok()) CheckRefusal(same);
  CheckSamples(request, *program, *reference);
}

void MakeAll(RunnerCalls& calls) {
  runner::DeviceSlotOptions options;
  options.device = options.device_name = "null";
  runner::DeviceSlot slot(options);
  const WorkerModes modes;
  runner::RunnerService service(slot, modes, "runner");
  uint64_t answered = 0;
  for (int i = 0; i < std::min(calls.calls_size(), kMaxCalls); ++i) {
    v1::MeasureRequest& request = *calls.mutable_calls(i);
    FillDigests(request);
    CheckPlans(request);
    grpc::ServerContext context;
    v1::MeasureReply reply;
    const grpc::Status status = service.Measure(&context, &request, &reply);
    CheckAnswer(status);
    answered += status.ok();
    if (!status.ok()) continue;
    KILN_CHECK((reply.result().error() == v1::NO_ERROR) == (reply.result().costs_s_size() > 0));
    for (const double cost_s : reply.result().costs_s()) KILN_CHECK(cost_s > 0);
  }
  KILN_CHECK(slot.stats().trials_done == answered);
}

}  // namespace

std::unique_ptr<google::protobuf::Message> NewCalls() { return std::make_unique<RunnerCalls>(); }

}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln::fuzz;
  RunnerCalls calls;
  if (!ParseCalls(InputText(data, size), calls)) return -1;
  MakeAll(calls);
  return 0;
}
