#include "rpc/http/http_guard.h"

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/key_folder.h"
#include "base/keys/live_keys.h"
#include "base/server/grpc_server.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

auto Unauthenticated(const std::string& found, const std::string& mends) {
  return StatusIs(StatusCode::kUnauthenticated, AllOf(HasSubstr(found), HasSubstr(mends)));
}

class GuardWithKeysTest : public testing::Test {
 protected:
  GuardWithKeysTest() : farm_(Make("farm")) {
    InitGrpc();
    Issue(farm_, {"box1", Role::kWork});
    keys_ = *LiveKeys::Open(farm_.FolderOf("box1"), clock_);
    guard_ = std::make_unique<HttpGuard>(HttpGuard::Options{.service = "tracker",
                                                            .access = FarmAccess(keys_, clock_),
                                                            .sessions = &sessions_,
                                                            .clock = &clock_});
  }

  AuthorityFolder Make(const std::string& name) {
    return *AuthorityFolder::Init(folder_.Join(name), {&clock_, nullptr});
  }
  static void Issue(AuthorityFolder& farm, const Member& member) {
    KILN_CHECK(farm.Issue(member, 100, false).ok(), "no certificate of {}", member.name);
  }
  static std::string Pem(const AuthorityFolder& farm, const std::string& name) {
    return ReadKeyFolder(farm.FolderOf(name))->certificate.ToPem();
  }
  std::string Cookie(const BrowserSessions::Holder& holder) {
    return *sessions_.Exchange(sessions_.MakeToken(holder));
  }

  FakeClock clock_{absl::Now()};
  const TempDir folder_ = *TempDir::Make("http-guard-test");
  AuthorityFolder farm_;
  BrowserSessions sessions_{{.clock = &clock_}};
  std::shared_ptr<LiveKeys> keys_;
  std::unique_ptr<HttpGuard> guard_;
};

TEST_F(GuardWithKeysTest, MembersGetInByTheirRole) {
  Issue(farm_, {"prometheus", Role::kRead});
  const std::string pem = Pem(farm_, "prometheus");
  EXPECT_EQ(*guard_->Admit({pem, "", ""}, Role::kRead), "prometheus");
  EXPECT_THAT(guard_->Admit({pem, "", ""}, Role::kOperate),
              StatusIs(StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("prometheus has the role read"),
                             HasSubstr("kiln keys issue prometheus --role operate --replace"))));
  EXPECT_EQ(*guard_->Admit({Pem(farm_, "box1"), "", ""}, Role::kRead), "box1");
}

TEST_F(GuardWithKeysTest, StrangersAreRefused) {
  EXPECT_THAT(guard_->Admit({}, Role::kRead),
              Unauthenticated("none was shown", "kiln keys issue NAME --role read"));
  AuthorityFolder other = Make("other");
  Issue(other, {"eve", Role::kAdmin});
  EXPECT_THAT(guard_->Admit({Pem(other, "eve"), "", ""}, Role::kRead),
              Unauthenticated("'eve' was issued by", "kiln keys issue"));
  EXPECT_THAT(guard_->Admit({"no certificate", "", ""}, Role::kRead),
              Unauthenticated("the caller's certificate", ""));
  // A secret opens no farm with keys.
  EXPECT_THAT(guard_->Admit({"", "Bearer 0123456789abcdef", ""}, Role::kRead),
              Unauthenticated("none was shown", ""));
}

TEST_F(GuardWithKeysTest, RevokedAndEndedOnesAreRefused) {
  Issue(farm_, {"alice", Role::kSubmit});
  const std::string pem = Pem(farm_, "alice");
  EXPECT_OK(guard_->Admit({pem, "", ""}, Role::kRead));
  ASSERT_OK(farm_.Revoke("alice"));
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_THAT(guard_->Admit({pem, "", ""}, Role::kRead),
              Unauthenticated("was revoked on", "kiln keys issue alice"));
  clock_.Advance(absl::Hours(24 * 101));
  EXPECT_THAT(guard_->Admit({Pem(farm_, "box1"), "", ""}, Role::kRead),
              Unauthenticated("ended on", "kiln keys renew box1"));
}

TEST_F(GuardWithKeysTest, ASessionHasTheRoleRead) {
  const std::string cookie = Cookie({.name = "alice"});
  EXPECT_EQ(*guard_->Admit({"", "", cookie}, Role::kRead), "alice");
  EXPECT_THAT(guard_->Admit({"", "", cookie}, Role::kSubmit),
              StatusIs(StatusCode::kPermissionDenied, HasSubstr("session has the role read")));
  EXPECT_THAT(guard_->Admit({"", "", "forged"}, Role::kRead),
              Unauthenticated("session of this browser has ended", "kiln dashboard"));
}

TEST_F(GuardWithKeysTest, ASessionEndsWhenItsCertificateIsRevoked) {
  Issue(farm_, {"alice", Role::kSubmit});
  const auto certificate = ReadKeyFolder(farm_.FolderOf("alice"))->certificate;
  const std::string cookie =
      Cookie({.name = "alice", .serial = certificate.Serial(), .expires = certificate.ends()});
  EXPECT_OK(guard_->Admit({"", "", cookie}, Role::kRead));
  ASSERT_OK(farm_.Revoke("alice"));
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_THAT(guard_->Admit({"", "", cookie}, Role::kRead),
              Unauthenticated("was revoked", "kiln keys issue alice"));
}

TEST(GuardTest, AFarmWithASecretAsksForIt) {
  const TempDir folder = *TempDir::Make("http-guard-test");
  ASSERT_OK(WriteFileAtomically(folder.Join("secret"), "0123456789abcdef", 0600));
  BrowserSessions sessions({});
  const HttpGuard guard({.service = "runner",
                         .access = FarmAccess(*Secret::Read(folder.Join("secret"))),
                         .sessions = &sessions});
  EXPECT_EQ(*guard.Admit({"", "Bearer 0123456789abcdef", ""}, Role::kRead), "");
  EXPECT_THAT(guard.Admit({}, Role::kRead),
              Unauthenticated("this runner asks for the secret", "Authorization: Bearer"));
  for (const char* text : {"Bearer ", "Bearer 0123456789abcdeg", "Bearer  0123456789abcdef"}) {
    EXPECT_THAT(guard.Admit({"", text, ""}, Role::kRead),
                Unauthenticated("another secret", "--secret-file"))
        << text;
  }
  EXPECT_THAT(guard.Admit({"", "0123456789abcdef", ""}, Role::kRead),
              Unauthenticated("none was told", ""));
  EXPECT_OK(guard.Admit({"", "", *sessions.Exchange(sessions.MakeToken({}))}, Role::kRead));
  EXPECT_EQ(guard.MakeCertificateCheck(), nullptr);
}

TEST(GuardTest, AFarmWithoutSecretIsOpen) { EXPECT_OK(HttpGuard({}).Admit({}, Role::kAdmin)); }

}  // namespace
}  // namespace kiln
