#include "rpc/member_check.h"

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/keys_testing.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

class MemberCheckTest : public testing::Test {
 protected:
  MemberCheckTest() {
    KILN_CHECK(farm_.Issue({"box1", Role::kWork}, 100, false).ok());
    check_ = std::make_unique<MemberCheck>(*LiveKeys::Open(farm_.FolderOf("box1"), clock_), clock_);
  }
  std::string Pem(const std::string& name) const {
    return ReadKeyFolder(farm_.FolderOf(name))->certificate.ToPem();
  }

  FakeClock clock_{kTestNow};
  const TempDir temporary_ = *TempDir::Make("member-check-test");
  AuthorityFolder farm_ = *AuthorityFolder::Init(temporary_.Join("keys"), {&clock_, nullptr});
  std::unique_ptr<MemberCheck> check_;
};

TEST_F(MemberCheckTest, KnownOnesAreToldFromOthersAgainAndAgain) {
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  ASSERT_OK(farm_.Issue({"bob", Role::kRead}, 10, false));
  const std::string alice = Pem("alice"), bob = Pem("bob");
  const std::string eve = TestCertificate(TestAuthority("ee"), {"eve", Role::kAdmin}).ToPem();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(check_->Check(alice)->name, "alice");
    EXPECT_EQ(check_->Check(bob)->role, Role::kRead);
    EXPECT_THAT(check_->Check(eve),
                StatusIs(StatusCode::kUnauthenticated, HasSubstr("was issued by 'Kiln farm ee'")));
    EXPECT_THAT(check_->Check("junk"), StatusIs(StatusCode::kUnauthenticated,
                                                HasSubstr("the caller's certificate holds no")));
  }
}

TEST_F(MemberCheckTest, AKnownOneThatIsRevokedIsOut) {
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  const std::string alice = Pem("alice");
  EXPECT_OK(check_->Check(alice));
  ASSERT_OK(farm_.Revoke("alice"));
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_THAT(check_->Check(alice),
              StatusIs(StatusCode::kUnauthenticated, HasSubstr("was revoked on")));
}

TEST_F(MemberCheckTest, AKnownOneWhoseTimeEndsIsOut) {
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  const std::string alice = Pem("alice");
  clock_.Advance(absl::Hours(240));
  EXPECT_OK(check_->Check(alice));
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(check_->Check(alice),
              StatusIs(StatusCode::kUnauthenticated, HasSubstr("`kiln keys renew alice`")));
}

}  // namespace
}  // namespace kiln
