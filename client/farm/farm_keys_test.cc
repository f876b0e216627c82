#include "client/farm/farm_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/key_folder.h"
#include "base/keys/verify.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

class FarmKeysTest : public testing::Test {
 protected:
  StatusOr<FarmKeys> Make() { return MakeFarmKeys(authority_, "alice", clock_); }
  AuthorityFolder Authority() { return *AuthorityFolder::Open(authority_, {.clock = &clock_}); }
  StatusOr<Identity> Holder(const std::string& folder) {
    KILN_ASSIGN_OR_RETURN(const KeyFolder keys, ReadKeyFolder(folder));
    return Verify(keys.certificate, keys.authority, keys.revoked, clock_.Now());
  }

  FakeClock clock_{kStart};
  const TempDir temporary_ = *TempDir::Make("farm-keys-test");
  const std::string authority_ = temporary_.Join("keys");
};

TEST_F(FarmKeysTest, AreMadeOnceAndStay) {
  ASSERT_OK_AND_ASSIGN(const FarmKeys first, Make());
  EXPECT_EQ(first.user, authority_ + "/alice");
  ASSERT_OK_AND_ASSIGN(const Identity daemons, Holder(first.daemons));
  ASSERT_OK_AND_ASSIGN(const Identity user, Holder(first.user));
  EXPECT_EQ(daemons.role, Role::kWork);
  EXPECT_EQ(user.role, Role::kAdmin);
  ASSERT_OK_AND_ASSIGN(const FarmKeys second, Make());
  EXPECT_EQ(*Holder(second.daemons), daemons);
  EXPECT_EQ(*Holder(second.user), user);
  EXPECT_EQ(Authority().List()->size(), 2u);
}

TEST_F(FarmKeysTest, AreRenewedInTheirLastMonth) {
  ASSERT_OK_AND_ASSIGN(const FarmKeys keys, Make());
  ASSERT_OK_AND_ASSIGN(const Identity before, Holder(keys.user));
  clock_.Advance(absl::Hours(24 * 334));
  ASSERT_OK(Make());
  EXPECT_EQ(*Holder(keys.user), before);
  clock_.Advance(absl::Hours(48));
  ASSERT_OK(Make());
  ASSERT_OK_AND_ASSIGN(const Identity after, Holder(keys.user));
  EXPECT_EQ(after.role, Role::kAdmin);
  EXPECT_GT(after.expires, before.expires + absl::Hours(24 * 300));
}

TEST_F(FarmKeysTest, AreRenewedAfterTheirEndAndNotAfterARevocation) {
  ASSERT_OK_AND_ASSIGN(const FarmKeys keys, Make());
  clock_.Advance(absl::Hours(24 * 400));
  EXPECT_FALSE(Holder(keys.daemons).ok());
  ASSERT_OK(Make());
  EXPECT_OK(Holder(keys.daemons));
  EXPECT_EQ(Holder(keys.user)->role, Role::kAdmin);
  ASSERT_OK(Authority().Revoke("alice"));
  EXPECT_THAT(Make(), StatusIs(StatusCode::kNotFound,
                               testing::AllOf(HasSubstr(authority_),
                                              HasSubstr("`kiln keys issue alice --role ROLE`"))));
  EXPECT_FALSE(Holder(keys.user).ok());
  ASSERT_OK(Authority().Issue({"alice", Role::kSubmit}, 100, false));
  ASSERT_OK(Make());
  EXPECT_EQ(Holder(keys.user)->role, Role::kSubmit);
}

// `kiln keys issue` has made the user's key before.
TEST_F(FarmKeysTest, ARoleThatIsThereStays) {
  {
    ASSERT_OK_AND_ASSIGN(AuthorityFolder folder,
                         AuthorityFolder::Init(authority_, {.clock = &clock_}));
    ASSERT_OK(folder.Issue({"alice", Role::kSubmit}, 100, false));
  }
  ASSERT_OK_AND_ASSIGN(const FarmKeys keys, Make());
  EXPECT_EQ(Holder(keys.user)->role, Role::kSubmit);
  // The folder was moved to another machine.
  ASSERT_OK(RemoveTree(keys.user));
  ASSERT_OK(Make());
  EXPECT_EQ(Holder(keys.user)->role, Role::kSubmit);
}

TEST_F(FarmKeysTest, AKeyThatOthersCanReadIsRefused) {
  ASSERT_OK_AND_ASSIGN(const FarmKeys keys, Make());
  ASSERT_EQ(chmod((keys.user + "/identity.pem").c_str(), 0644), 0);
  EXPECT_THAT(Make(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("has mode 0644")));
}

TEST(MemberOfUser, IsAlwaysANameOfItsOwn) {
  EXPECT_EQ(MemberOfUser("alice"), "alice");
  for (const char* user : {"user 1000", "", "-a", "a/b", "daemons", "authority"}) {
    EXPECT_EQ(MemberOfUser(user), "user") << user;
  }
}

}  // namespace
}  // namespace kiln::client
