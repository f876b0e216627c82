#include "rpc/daemon_access.h"

#include <cstdlib>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

auto Refused(const std::string& found, const std::string& mends) {
  return StatusIs(StatusCode::kFailedPrecondition, AllOf(HasSubstr(found), HasSubstr(mends)));
}

class DaemonAccessTest : public testing::Test {
 protected:
  DaemonAccessTest() {
    unsetenv("KILN_KEYS");
    unsetenv("KILN_SECRET_FILE");
    KILN_CHECK(WriteFileAtomically(secret_, "0123456789abcdef", 0600).ok(), "no secret");
  }
  ~DaemonAccessTest() override {
    unsetenv("KILN_KEYS");
    unsetenv("KILN_SECRET_FILE");
  }

  const TempDir folder_ = *TempDir::Make("daemon-access");
  const std::string secret_ = folder_.Join("secret");
  DaemonFlags flags_;
};

TEST_F(DaemonAccessTest, WithoutKeysListensOnThisMachineOnly) {
  flags_.listen = "127.0.0.1:0";
  ASSERT_OK_AND_ASSIGN(const FarmAccess open, OpenAccess(flags_));
  EXPECT_TRUE(open.secret().empty());
  EXPECT_EQ(open.keys(), nullptr);
  flags_.listen = "0.0.0.0:9190";
  EXPECT_THAT(OpenAccess(flags_),
              Refused("other machines can reach 0.0.0.0:9190", "kiln keys init"));
  // A secret would be read on the way.
  flags_.secret_file = secret_;
  EXPECT_THAT(OpenAccess(flags_), Refused("0.0.0.0:9190", "--insecure"));
  flags_.insecure = true;
  ASSERT_OK_AND_ASSIGN(const FarmAccess secret, OpenAccess(flags_));
  EXPECT_EQ(secret.secret().text(), "0123456789abcdef");
  flags_.listen = "nonsense";
  EXPECT_THAT(OpenAccess(flags_), StatusIs(StatusCode::kInvalidArgument, HasSubstr("nonsense")));
  flags_.listen = "127.0.0.1:0";
  flags_.secret_file = folder_.Join("none");
  EXPECT_THAT(OpenAccess(flags_), StatusIs(StatusCode::kNotFound, HasSubstr("none")));
}

TEST_F(DaemonAccessTest, WithKeysOfADaemonListensAnywhere) {
  ASSERT_OK_AND_ASSIGN(AuthorityFolder farm,
                       AuthorityFolder::Init(folder_.Join("keys"), {&Clock::Real(), nullptr}));
  ASSERT_OK(farm.Issue({"box1", Role::kWork}, 10, false));
  ASSERT_OK(farm.Issue({"alice", Role::kAdmin}, 10, false));
  flags_.listen = "0.0.0.0:9190";
  flags_.keys_folder = farm.FolderOf("box1");
  ASSERT_OK_AND_ASSIGN(const FarmAccess access, OpenAccess(flags_));
  EXPECT_TRUE(access.secret().empty());
  EXPECT_EQ(access.Self()->name, "box1");
  flags_.secret_file = secret_;
  EXPECT_THAT(OpenAccess(flags_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("--keys and --secret-file")));
  // A flag goes before the environment, and keys before a secret.
  setenv("KILN_KEYS", flags_.keys_folder.c_str(), 1);
  flags_.keys_folder.clear();
  flags_.listen = "127.0.0.1:0";
  EXPECT_EQ(OpenAccess(flags_)->keys(), nullptr);
  flags_.secret_file.clear();
  setenv("KILN_SECRET_FILE", secret_.c_str(), 1);
  EXPECT_NE(OpenAccess(flags_)->keys(), nullptr);
  flags_.keys_folder = farm.FolderOf("alice");
  EXPECT_THAT(OpenAccess(flags_),
              Refused("has the keys of alice with the role admin, expected those of a daemon",
                      "`kiln keys issue NAME --role work`"));
  ASSERT_OK(farm.Revoke("box1"));
  flags_.keys_folder = farm.FolderOf("box1");
  EXPECT_THAT(OpenAccess(flags_),
              StatusIs(StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("box1: the certificate of box1 with the serial number"),
                             HasSubstr("`kiln keys issue box1 --role work`"))));
}

}  // namespace
}  // namespace kiln
