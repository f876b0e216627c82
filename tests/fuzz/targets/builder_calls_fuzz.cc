// Calls a builder whose children are replaced by an executor that instantiates each candidate in
// this process, and compiles it for target null. Building the same request twice gives the same
// reply; a candidate that cannot be built is a reply.
#include <string>

#include "base/status.h"
#include "builder/artifact.h"
#include "builder/cache.h"
#include "builder/service.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/null.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "rpc/artifact_digest.h"
#include "rpc/hardware_message.h"
#include "tests/fuzz/targets/calls.h"
#include "tests/fuzz/targets/calls.pb.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"

namespace kiln::fuzz {
namespace {

constexpr int kMaxCalls = 8;
constexpr int64_t kCacheBytes = 1 << 20;

StatusOr<ir::Program> Instantiate(const dag::DagPtr& dag, const v1::BuildRequest& request,
                                  const target::Target& target) {
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(request.steps()));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, steps));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = target.is_gpu()}));
  if (!target.is_gpu()) return program;
  const auto hardware = target::FillHardware(target, HardwareParamsOf(request.hardware()));
  KILN_RETURN_IF_ERROR(codegen::CheckCudaProgram(program, hardware, target));
  return program;
}

class InProcess : public builder::BuildExecutor {
 public:
  StatusOr<builder::BuildOutcome> Build(const v1::BuildRequest& request,
                                        const std::function<bool()>&) override {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(request.dag()));
    KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(request.target()));
    builder::BuildOutcome outcome;
    const StatusOr<ir::Program> program = Instantiate(dag, request, target);
    if (program.ok()) {
      *outcome.reply.mutable_artifact() =
          builder::MakeArtifact(codegen::CompileNull(*program), target.kind->device);
    } else {
      CheckRefusal(program.status());
      outcome.reply.set_error(v1::INSTANTIATION_ERROR);
      outcome.reply.set_message(std::string(Message(program.status())));
    }
    return outcome;
  }
};

struct Answer {
  grpc::Status status;
  v1::BuildReply reply;
};

Answer Build(builder::BuilderService& service, const v1::BuildRequest& request) {
  grpc::ServerContext context;
  Answer answer;
  answer.status = service.Build(&context, &request, &answer.reply);
  CheckAnswer(answer.status);
  return answer;
}

void MakeAll(const BuilderCalls& calls) {
  InProcess in_process;
  builder::BuildCache cache(in_process, kCacheBytes, "fuzz");
  const WorkerModes modes;
  builder::BuilderService service(cache, modes, /*allow_faults=*/false);
  for (int i = 0; i < std::min(calls.calls_size(), kMaxCalls); ++i) {
    const Answer first = Build(service, calls.calls(i));
    const Answer second = Build(service, calls.calls(i));
    KILN_CHECK(first.status.error_code() == second.status.error_code());
    if (!first.status.ok()) continue;
    const v1::Artifact& artifact = first.reply.artifact();
    KILN_CHECK(first.reply.has_artifact() == (first.reply.error() == v1::NO_ERROR));
    KILN_CHECK(!first.reply.has_artifact() || artifact.digest() == DigestOf(artifact));
    KILN_CHECK(artifact.digest() == second.reply.artifact().digest());
    KILN_CHECK(first.reply.message() == second.reply.message());
  }
}

}  // namespace

std::unique_ptr<google::protobuf::Message> NewCalls() { return std::make_unique<BuilderCalls>(); }

}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln::fuzz;
  BuilderCalls calls;
  if (!ParseCalls(InputText(data, size), calls)) return -1;
  MakeAll(calls);
  return 0;
}
