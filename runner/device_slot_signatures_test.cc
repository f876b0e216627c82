// A slot of a farm with keys runs nothing but what the farm's builders made for the trial.
#include <functional>

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/status_testing.h"
#include "rpc/artifact_digest.h"
#include "runner/device_slot.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

v1::Artifact ProgramOf(const std::string& text) {
  v1::Artifact artifact;
  artifact.set_device("null");
  artifact.set_binary(text);
  artifact.set_digest(DigestOf(artifact));
  return artifact;
}

class DeviceSlotSignaturesTest : public testing::Test {
 protected:
  DeviceSlotSignaturesTest() {
    for (const char* builder : {"box1", "box2"}) {
      KILN_CHECK(farm_.Issue({builder, Role::kWork}, 10, false).ok());
    }
    DeviceSlotOptions options;
    options.device = std::string(kNullDevice);
    options.keys = *LiveKeys::Open(farm_.FolderOf("box1"), Clock::Real());
    options.announced = {"null"};
    slot_ = std::make_unique<DeviceSlot>(options);
  }

  void Sign(v1::Artifact& artifact, std::string_view trial, const AuthorityFolder& farm,
            std::string_view target = "null") const {
    KILN_CHECK(SignArtifact(*ReadKeyFolder(farm.FolderOf("box2")), target, trial, artifact).ok());
  }
  // Returns a request as a scheduler sends it.
  v1::MeasureRequest RequestOf(const AuthorityFolder& farm) const {
    v1::MeasureRequest request;
    *request.mutable_artifact() = ProgramOf("candidate");
    *request.mutable_reference() = ProgramOf("loops");
    request.set_reference_digest(request.reference().digest());
    request.set_trial("job/7");
    Sign(*request.mutable_artifact(), "job/7", farm);
    Sign(*request.mutable_reference(), kReferenceTrial, farm);
    return request;
  }
  Status Measure(const v1::MeasureRequest& request) {
    return slot_->Measure(request, [] { return false; }).status();
  }
  void ExpectRefused(const v1::MeasureRequest& request, const std::string& why) {
    EXPECT_THAT(Measure(request), StatusIs(StatusCode::kPermissionDenied, HasSubstr(why)));
    EXPECT_EQ(slot_->stats().trials_done, 0u);
  }

  const TempDir temporary_ = *TempDir::Make("device-slot-signatures-test");
  AuthorityFolder farm_ =
      *AuthorityFolder::Init(temporary_.Join("keys"), {&Clock::Real(), nullptr});
  std::unique_ptr<DeviceSlot> slot_;
};

TEST_F(DeviceSlotSignaturesTest, MeasuresWhatTheFarmsBuildersMade) {
  v1::MeasureRequest request = RequestOf(farm_);
  EXPECT_OK(Measure(request));
  // The reference is known now. The same program is measured again in the same trial.
  request.clear_reference();
  EXPECT_OK(Measure(request));
  request.set_trial("job/8");
  EXPECT_THAT(Measure(request), StatusIs(StatusCode::kPermissionDenied,
                                         HasSubstr("the artifact is signed for trial 'job/7', "
                                                   "expected one that is signed for trial")));
}

TEST_F(DeviceSlotSignaturesTest, RefusesWhatTheyDidNotMake) {
  v1::MeasureRequest request = RequestOf(farm_);
  request.mutable_artifact()->clear_signature();
  ExpectRefused(request, "the artifact has no signature");

  request = RequestOf(farm_);
  request.mutable_artifact()->set_signature("forged");
  ExpectRefused(request, "the signature of the artifact is not that of box2");

  request = RequestOf(farm_);
  request.mutable_artifact()->set_target("cuda");
  ExpectRefused(request, "target 'cuda'");

  // The code of another program, with and without its digest.
  request = RequestOf(farm_);
  request.mutable_artifact()->set_binary("changed");
  EXPECT_THAT(Measure(request),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("the artifact came with digest")));
  request.mutable_artifact()->set_digest(DigestOf(request.artifact()));
  ExpectRefused(request, "the signature of the artifact is not that of box2");

  // A trial's program in place of the reference, and the other way round.
  request = RequestOf(farm_);
  Sign(*request.mutable_reference(), "job/7", farm_);
  ExpectRefused(request, "the reference is signed for trial 'job/7'");
  request = RequestOf(farm_);
  Sign(*request.mutable_artifact(), kReferenceTrial, farm_);
  ExpectRefused(request, "the artifact is signed for trial 'reference'");
}

TEST_F(DeviceSlotSignaturesTest, RefusesWhatWasMadeForOtherDevices) {
  v1::MeasureRequest request = RequestOf(farm_);
  Sign(*request.mutable_artifact(), "job/7", farm_, "cuda -arch=sm_90");
  ExpectRefused(request,
                "the artifact is signed for target 'cuda -arch=sm_90', expected one for a "
                "target that this runner serves (null)");
  request = RequestOf(farm_);
  Sign(*request.mutable_reference(), kReferenceTrial, farm_, "llvm -num-cores=2");
  ExpectRefused(request, "the reference is signed for target 'llvm -num-cores=2'");
}

TEST_F(DeviceSlotSignaturesTest, RefusesForeignAndRevokedBuilders) {
  AuthorityFolder foreign =
      *AuthorityFolder::Init(temporary_.Join("foreign"), {&Clock::Real(), nullptr});
  ASSERT_OK(foreign.Issue({"box2", Role::kWork}, 10, false));
  ExpectRefused(RequestOf(foreign),
                "who signed the artifact: the certificate of 'box2' was issued");
  // The list is there before the slot reads its keys for the first time in a second.
  ASSERT_OK(farm_.Revoke("box2"));
  DeviceSlotOptions options;
  options.device = std::string(kNullDevice);
  options.keys = *LiveKeys::Open(farm_.FolderOf("box1"), Clock::Real());
  slot_ = std::make_unique<DeviceSlot>(options);
  ExpectRefused(RequestOf(farm_), "was revoked on");
}

}  // namespace
}  // namespace kiln::runner
