#include "rpc/artifact_signature.h"

#include <chrono>
#include <functional>

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/keys_testing.h"
#include "base/status_testing.h"
#include "rpc/artifact_digest.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ArtifactSignatureTest : public testing::Test {
 protected:
  ArtifactSignatureTest() {
    KILN_CHECK(farm_.Issue({"box1", Role::kWork}, 100, false).ok());
    KILN_CHECK(farm_.Issue({"box2", Role::kWork}, 10, false).ok());
    KILN_CHECK(farm_.Issue({"alice", Role::kAdmin}, 100, false).ok());
    check_ = std::make_unique<ArtifactCheck>(
        *LiveKeys::Open(farm_.FolderOf("box1"), clock_),
        std::vector<std::string>{"llvm", "cpu", "llvm/x86-64-v3"}, clock_);
  }

  // Returns an artifact that is signed with a key of the farm.
  v1::Artifact Signed(const AuthorityFolder& farm, const std::string& builder,
                      std::string_view target = "llvm") const {
    v1::Artifact artifact;
    artifact.set_device("cpu");
    artifact.set_binary("code");
    artifact.set_digest(DigestOf(artifact));
    KILN_CHECK(
        SignArtifact(*ReadKeyFolder(farm.FolderOf(builder)), target, "job/7", artifact).ok());
    return artifact;
  }
  void ExpectRefused(const v1::Artifact& artifact, const std::string& trial,
                     const testing::Matcher<std::string>& why) {
    EXPECT_THAT(check_->Check(artifact, trial, "artifact"),
                StatusIs(StatusCode::kPermissionDenied, why));
  }

  FakeClock clock_{kTestNow};
  const TempDir temporary_ = *TempDir::Make("artifact-signature-test");
  AuthorityFolder farm_ = *AuthorityFolder::Init(temporary_.Join("keys"), {&clock_, nullptr});
  std::unique_ptr<ArtifactCheck> check_;
};

TEST_F(ArtifactSignatureTest, EachBuilderOfTheFarmIsBelieved) {
  for (const char* builder : {"box1", "box2"}) {
    const v1::Artifact artifact = Signed(farm_, builder);
    EXPECT_EQ(artifact.trial(), "job/7");
    EXPECT_EQ(artifact.target(), "llvm");
    EXPECT_OK(check_->Check(artifact, "job/7", "artifact"));
  }
}

TEST_F(ArtifactSignatureTest, AnArtifactOfAnotherTrialIsRefused) {
  const std::string why =
      "the artifact is signed for trial 'job/7', expected one that is signed for trial 'job/8'";
  ExpectRefused(Signed(farm_, "box2"), "job/8", HasSubstr(why));
  ExpectRefused(Signed(farm_, "box2"), std::string(kReferenceTrial), HasSubstr("'reference'"));
  ExpectRefused(Signed(farm_, "box2"), "", HasSubstr("names no trial for its artifact"));
  // The id alone does not make it another trial's.
  v1::Artifact renamed = Signed(farm_, "box2");
  renamed.set_trial("job/8");
  ExpectRefused(renamed, "job/8", HasSubstr("is not that of box2 over digest"));
}

TEST_F(ArtifactSignatureTest, AnArtifactForAnotherKindOfTargetIsRefused) {
  for (const char* target : {"llvm -mcpu=znver4 -num-cores=2", "cpu -num-cores=2", "null"}) {
    SCOPED_TRACE(target);
    EXPECT_OK(check_->Check(Signed(farm_, "box2", target), "job/7", "artifact"));
  }
  ExpectRefused(Signed(farm_, "box2", "cuda -arch=sm_90"), "job/7",
                HasSubstr("the artifact is signed for target 'cuda -arch=sm_90', expected one for "
                          "a target that this runner serves (llvm, cpu, llvm/x86-64-v3)"));
  for (const char* target : {"", "llvmx", "llv", " llvm", "llvm/x86-64-v4", "llvm\n"}) {
    ExpectRefused(Signed(farm_, "box2", target), "job/7", HasSubstr("a target that this runner"));
  }
}

TEST_F(ArtifactSignatureTest, WhatWasChangedIsRefused) {
  const std::pair<const char*, std::function<void(v1::Artifact&)>> kChanges[] = {
      {"binary",
       [](v1::Artifact& artifact) {
         artifact.set_binary("other");
         artifact.set_digest(DigestOf(artifact));
       }},
      {"target", [](v1::Artifact& artifact) { artifact.set_target("llvm -mcpu=znver4"); }},
      {"part of the target and the trial",
       [](v1::Artifact& artifact) { artifact.set_target("llvm\n5:job/7"); }},
      {"forged signature", [](v1::Artifact& artifact) { artifact.set_signature("forged"); }},
      {"one bit of the signature",
       [](v1::Artifact& artifact) { artifact.mutable_signature()->back() ^= 1; }},
      {"certificate of another builder",
       [this](v1::Artifact& artifact) {
         artifact.set_certificate(Signed(farm_, "box1").certificate());
       }},
  };
  for (const auto& [what, change] : kChanges) {
    v1::Artifact artifact = Signed(farm_, "box2");
    change(artifact);
    SCOPED_TRACE(what);
    ExpectRefused(artifact, "job/7",
                  AllOf(HasSubstr("the signature of the artifact is not that of box"),
                        HasSubstr("have a builder of this farm build the program anew")));
  }
}

TEST_F(ArtifactSignatureTest, NoSignatureAndNoCertificateAreRefused) {
  v1::Artifact artifact = Signed(farm_, "box2");
  artifact.set_certificate("junk");
  ExpectRefused(artifact, "job/7", HasSubstr("4 bytes that are no certificate"));
  artifact.clear_certificate();
  ExpectRefused(artifact, "job/7", HasSubstr("0 bytes that are no certificate"));
  artifact.clear_signature();
  ExpectRefused(artifact, "job/7", HasSubstr("the artifact has no signature"));
}

TEST_F(ArtifactSignatureTest, AForeignBuilderIsRefused) {
  AuthorityFolder foreign = *AuthorityFolder::Init(temporary_.Join("foreign"), {&clock_, nullptr});
  ASSERT_OK(foreign.Issue({"box2", Role::kWork}, 10, false));
  ExpectRefused(Signed(foreign, "box2"), "job/7",
                AllOf(HasSubstr("who signed the artifact: "), HasSubstr("was issued by")));
}

TEST_F(ArtifactSignatureTest, ARevokedBuilderIsRefused) {
  const v1::Artifact artifact = Signed(farm_, "box2");
  ASSERT_OK(check_->Check(artifact, "job/7", "artifact"));
  ASSERT_OK(farm_.Revoke("box2"));
  clock_.Advance(LiveKeys::kLookEvery);
  ExpectRefused(artifact, "job/7", HasSubstr("was revoked on"));
}

TEST_F(ArtifactSignatureTest, ABuilderWhoseTimeHasEndedIsRefused) {
  const v1::Artifact artifact = Signed(farm_, "box2");
  ASSERT_OK(check_->Check(artifact, "job/7", "artifact"));
  clock_.Advance(absl::Hours(241));
  ExpectRefused(artifact, "job/7", HasSubstr("`kiln keys renew box2`"));
}

// The runner moves to another farm, and its process goes on.
TEST_F(ArtifactSignatureTest, ABuilderOfTheFarmBeforeIsRefused) {
  AuthorityFolder other = *AuthorityFolder::Init(temporary_.Join("other"), {&clock_, nullptr});
  ASSERT_OK(other.Issue({"box1", Role::kWork}, 10, false));
  const v1::Artifact artifact = Signed(farm_, "box2");
  ASSERT_OK(check_->Check(artifact, "job/7", "artifact"));
  ASSERT_OK(WriteKeyFolder(farm_.FolderOf("box1"), *ReadKeyFolder(other.FolderOf("box1"))));
  clock_.Advance(LiveKeys::kLookEvery);
  ExpectRefused(artifact, "job/7", HasSubstr("was issued by"));
  EXPECT_OK(check_->Check(Signed(other, "box1"), "job/7", "artifact"));
}

// The certificate of a builder that is remembered, changed in each byte, is another one.
TEST_F(ArtifactSignatureTest, AChangedCertificateIsNotTheOneThatIsRemembered) {
  const v1::Artifact good = Signed(farm_, "box2");
  ASSERT_OK(check_->Check(good, "job/7", "artifact"));
  for (size_t i = 0; i < good.certificate().size(); ++i) {
    v1::Artifact changed = good;
    (*changed.mutable_certificate())[i] ^= 1;
    EXPECT_THAT(check_->Check(changed, "job/7", "artifact"),
                StatusIs(StatusCode::kPermissionDenied, testing::_))
        << i;
  }
  EXPECT_OK(check_->Check(good, "job/7", "artifact"));
}

TEST_F(ArtifactSignatureTest, AMemberWhoIsNoBuilderIsRefused) {
  ExpectRefused(Signed(farm_, "alice"), "job/7",
                HasSubstr("signed by alice, whose role is admin, expected a builder"));
}

// Prints what a trial pays. The bound is far above it and finds a check that has become slow.
TEST_F(ArtifactSignatureTest, CostsOfOneArtifact) {
  constexpr int kTimes = 200;
  const KeyFolder builder = *ReadKeyFolder(farm_.FolderOf("box2"));
  v1::Artifact artifact = Signed(farm_, "box2");
  const auto seconds = [](const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; ++i) work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kTimes;
  };
  const double sign_s =
      seconds([&] { KILN_CHECK(SignArtifact(builder, "llvm", "job/7", artifact).ok()); });
  const double check_s =
      seconds([&] { KILN_CHECK(check_->Check(artifact, "job/7", "artifact").ok()); });
  fmt::print("sign {:.0f} us, check {:.0f} us\n", 1e6 * sign_s, 1e6 * check_s);
  EXPECT_LT(sign_s, 5e-3);
  EXPECT_LT(check_s, 5e-3);
}

}  // namespace
}  // namespace kiln
