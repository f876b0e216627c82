#include "rpc/field_limits.h"

#include <google/protobuf/unknown_field_set.h>

#include "base/status_testing.h"
#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "proto/scheduler.pb.h"
#include "proto/tracker.pb.h"

namespace kiln {
namespace {

auto Refuses(const std::string& why) { return StatusIs(StatusCode::kInvalidArgument, why); }

TEST(FieldLimitsTest, MessagesOfAFarmAreAccepted) {
  EXPECT_OK(CheckFields(v1::SubmitRequest()));
  v1::SubmitRequest submit;
  v1::TaskSpec& task = *submit.mutable_spec()->add_tasks();
  task.set_dag(std::string(4 << 20, ' '));
  task.set_description("conv2d \xc3\xa4");
  for (int i = 0; i < 5'000; ++i) (*submit.mutable_spec()->mutable_options()->mutable_faults())[i];
  submit.mutable_spec()->mutable_options()->set_schedule_template(std::string(1 << 20, ' '));
  submit.mutable_spec()->mutable_options()->set_kernel(std::string(1 << 20, ' '));
  EXPECT_OK(CheckFields(submit));
  v1::BuildRequest build;
  build.set_kernel(std::string(1 << 20, ' '));
  EXPECT_OK(CheckFields(build));
  v1::MeasureRequest measure;
  measure.mutable_artifact()->set_binary(std::string(32 << 20, '\xff'));
  // Bytes need not be text.
  EXPECT_OK(CheckFields(measure));
}

TEST(FieldLimitsTest, AnswersOfServedCode) {
  v1::CallbackReply reply;
  for (int i = 0; i < 5'000; ++i) reply.add_values(1);
  reply.add_applied()->add_made()->set_steps(std::string(1 << 20, ' '));
  reply.set_error(std::string(64 << 10, 'e'));
  EXPECT_OK(CheckFields(reply));
  reply.mutable_error()->push_back('e');
  EXPECT_THAT(CheckFields(reply),
              Refuses("CallbackReply.error has 65537 bytes, at most 65536 are accepted"));
  reply.clear_error();
  reply.set_user(std::string(257, 'u'));
  EXPECT_THAT(CheckFields(reply),
              Refuses("CallbackReply.user has 257 bytes, at most 256 are accepted"));
}

TEST(FieldLimitsTest, ATextThatIsTooLongIsNamed) {
  v1::SubmitRequest submit;
  submit.mutable_spec()->set_name(std::string(1025, 'x'));
  EXPECT_THAT(CheckFields(submit),
              Refuses("JobSpec.name has 1025 bytes, at most 1024 are accepted"));
  submit.mutable_spec()->set_name(std::string(1024, 'x'));
  EXPECT_OK(CheckFields(submit));
  v1::MeasureRequest measure;
  measure.set_reference_digest(std::string(48 << 20, 'a'));
  EXPECT_THAT(
      CheckFields(measure),
      Refuses("MeasureRequest.reference_digest has 50331648 bytes, at most 256 are accepted"));
  measure.Clear();
  measure.mutable_artifact()->set_digest(std::string(300, 'a'));
  EXPECT_THAT(CheckFields(measure),
              Refuses("Artifact.digest has 300 bytes, at most 256 are accepted"));
}

TEST(FieldLimitsTest, ListsMapsAndWhatIsInThem) {
  v1::AnnounceRequest announce;
  for (int i = 0; i < 65; ++i) announce.mutable_worker()->add_keys("llvm");
  EXPECT_THAT(CheckFields(announce),
              Refuses("WorkerState.keys has 65 entries, at most 64 are accepted"));
  announce.mutable_worker()->mutable_keys()->RemoveLast();
  announce.mutable_worker()->set_keys(7, std::string(257, 'k'));
  EXPECT_THAT(CheckFields(announce),
              Refuses("WorkerState.keys has 257 bytes, at most 256 are accepted"));
  v1::RenewRequest renew;
  renew.add_leases();
  renew.add_leases()->mutable_worker()->set_device(std::string(300, 'd'));
  EXPECT_THAT(CheckFields(renew),
              Refuses("WorkerState.device has 300 bytes, at most 256 are accepted"));
  v1::SubmitRequest submit;
  // Each use fetches the map anew, because a map does not see changes by reflection.
  const auto parameters = [&]() -> auto& {
    return *submit.mutable_spec()->mutable_options()->mutable_policy_parameters();
  };
  parameters()[std::string(1025, 'p')] = 1;
  EXPECT_THAT(CheckFields(submit),
              Refuses("TuneOptions.PolicyParametersEntry.key has 1025 bytes, at most 1024 are "
                      "accepted"));
  parameters().clear();
  for (int i = 0; i < 1025; ++i) parameters()[fmt::format("{}", i)] = 1;
  EXPECT_THAT(CheckFields(submit),
              Refuses("TuneOptions.policy_parameters has 1025 entries, at most 1024 are accepted"));
}

TEST(FieldLimitsTest, FieldsOfANewerKiln) {
  v1::SubmitRequest submit;
  auto* unknown = submit.GetReflection()->MutableUnknownFields(&submit);
  unknown->AddLengthDelimited(1234, std::string(1000, 'x'));
  EXPECT_OK(CheckFields(submit));
  unknown->AddLengthDelimited(1235, std::string(1 << 20, 'x'));
  EXPECT_THAT(CheckFields(submit),
              StatusIs(StatusCode::kInvalidArgument,
                       testing::HasSubstr("in fields that this Kiln does not know")));
}

TEST(FieldLimitsTest, TextIsUtf8) {
  v1::GetJobRequest get;
  get.set_job_id("\xff");
  EXPECT_THAT(CheckFields(get), Refuses("GetJobRequest.job_id is not UTF-8 text"));
}

}  // namespace
}  // namespace kiln
