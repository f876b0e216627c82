#include "runner/device_slot_testing.h"

#include <cstdint>
#include <vector>

#include "base/file/file.h"
#include "base/status.h"
#include "base/status_testing.h"
#include "rpc/artifact_digest.h"

namespace kiln::runner {
namespace {

void AddArg(v1::LaunchPlan& plan, const std::string& name, std::vector<int64_t> shape,
            v1::ArgSpec::Role role) {
  v1::ArgSpec& arg = *plan.add_args();
  arg.set_name(name);
  arg.set_dtype("float32");
  arg.mutable_shape()->Assign(shape.begin(), shape.end());
  arg.set_role(role);
  arg.set_alignment_bytes(64);
}

}  // namespace

testing::Matcher<std::string> IsEmptyOrNoiseMark() {
  return testing::AnyOf(testing::IsEmpty(), testing::StartsWith("busy machine: "));
}

DeviceSlotOptions TestOptions() {
  DeviceSlotOptions options;
  // The child has the soft limit of most machines, whatever limit this test has.
  options.child_command = {"/bin/sh",
                           "-c",
                           "ulimit -n 1024; exec \"$0\" \"$@\"",
                           "runner/kiln_runner",
                           "--child",
                           "--device",
                           "cpu",
                           "--threads",
                           "2"};
  options.device_name = "test device";
  return options;
}

v1::Artifact Program(const std::string& name) {
  v1::Artifact artifact;
  artifact.set_device("cpu");
  auto binary = ReadFile("runner/testdata/" + name + ".so");
  KILN_CHECK(binary.ok(), "{}", Message(binary.status()));
  artifact.set_binary(*binary);
  v1::LaunchPlan& plan = *artifact.mutable_plan();
  AddArg(plan, "a", {4, 6}, v1::ArgSpec::INPUT);
  AddArg(plan, "b", {4, 6}, v1::ArgSpec::INPUT);
  AddArg(plan, "out", {4, 6}, v1::ArgSpec::OUTPUT);
  AddArg(plan, "scratch", {16}, v1::ArgSpec::WORKSPACE);
  plan.add_launches()->set_symbol("kiln_entry");
  artifact.set_digest(DigestOf(artifact));
  return artifact;
}

v1::MeasureRequest Request(const std::string& name) {
  v1::MeasureRequest request;
  *request.mutable_artifact() = Program(name);
  *request.mutable_reference() = Program("correct");
  request.set_reference_digest(request.reference().digest());
  request.set_seed(42);
  request.mutable_options()->set_timeout_ms(5000);
  return request;
}

v1::MeasureReply DeviceSlotTest::Measure(v1::MeasureRequest request) {
  request.mutable_artifact()->set_digest(DigestOf(request.artifact()));
  auto reply = slot_.Measure(request, NotCancelled);
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.ok() ? *reply : v1::MeasureReply();
}

void DeviceSlotTest::ExpectRight() {
  const v1::TrialResult result = Measure(Request("correct")).result();
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
  EXPECT_THAT(result.costs_s(), testing::SizeIs(1));
}

}  // namespace kiln::runner
