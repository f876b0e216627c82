#include "base/keys/live_keys.h"

#include <vector>

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/log.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class LiveKeysTest : public testing::Test {
 protected:
  LiveKeysTest() {
    SetLogSink([this](std::string_view line) { log_.emplace_back(line); });
    KILN_CHECK(farm_.Issue({"box1", Role::kWork}, 10, false).ok());
    live_ = *LiveKeys::Open(farm_.FolderOf("box1"), clock_);
  }
  ~LiveKeysTest() override { SetLogSink(nullptr); }

  // Returns the serial number that holds after the next look.
  std::string SerialNow() {
    clock_.Advance(LiveKeys::kLookEvery);
    return live_->Now()->certificate.Serial();
  }

  FakeClock clock_;
  const TempDir temporary_ = *TempDir::Make("live-keys-test");
  AuthorityFolder farm_ = *AuthorityFolder::Init(temporary_.Join("keys"), {&clock_, nullptr});
  const std::string identity_ = farm_.FolderOf("box1/identity.pem");
  std::shared_ptr<LiveKeys> live_;
  std::vector<std::string> log_;
};

TEST_F(LiveKeysTest, ARenewalHoldsAtTheNextLook) {
  const auto before = live_->Now();
  ASSERT_OK_AND_ASSIGN(const Issued renewed, farm_.Renew("box1", 20));
  EXPECT_EQ(live_->Now(), before) << "it is not yet time to look";
  EXPECT_EQ(SerialNow(), renewed.identity.serial);
  EXPECT_TRUE(live_->Now()->key.Matches(live_->Now()->certificate));
  const auto after = live_->Now();
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_EQ(live_->Now(), after) << "nothing has changed, and nothing is read";
  EXPECT_THAT(log_, SizeIs(0));
}

TEST_F(LiveKeysTest, RevocationsHoldAtTheNextLook) {
  ASSERT_OK_AND_ASSIGN(const Issued alice, farm_.Issue({"alice", Role::kRead}, 10, false));
  ASSERT_OK(farm_.Revoke("alice"));
  EXPECT_FALSE(live_->Now()->revoked.RevokedAt(alice.identity.serial).has_value());
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_TRUE(live_->Now()->revoked.RevokedAt(alice.identity.serial).has_value());
}

// A copy that is not atomic shows the file in every state between the old and the new.
TEST_F(LiveKeysTest, WhileFilesAreCopiedTheStateBeforeHolds) {
  const std::string before = SerialNow();
  ASSERT_OK_AND_ASSIGN(const std::string old_text, ReadFile(identity_));
  ASSERT_OK_AND_ASSIGN(const Issued renewed, farm_.Renew("box1", 20));
  ASSERT_OK_AND_ASSIGN(const std::string new_text, ReadFile(identity_));
  ASSERT_OK(WriteFile(identity_, old_text));
  for (size_t size = 0; size + 1 < new_text.size(); size += 97) {
    ASSERT_OK(WriteFile(identity_, new_text.substr(0, size)));
    EXPECT_EQ(SerialNow(), before) << size;
  }
  // The new certificate with the old key.
  ASSERT_OK(WriteFile(identity_, new_text.substr(0, new_text.find("-----BEGIN PRIVATE")) +
                                     old_text.substr(old_text.find("-----BEGIN PRIVATE"))));
  EXPECT_EQ(SerialNow(), before);
  ASSERT_OK(RemoveFile(identity_));
  EXPECT_EQ(SerialNow(), before);
  EXPECT_EQ(SerialNow(), before);
  ASSERT_OK(WriteFileAtomically(identity_, new_text, 0600));
  EXPECT_EQ(SerialNow(), renewed.identity.serial);
  // Each problem is said once, not once a second.
  EXPECT_LE(log_.size(), 5u);
  ASSERT_FALSE(log_.empty());
  EXPECT_THAT(log_[0], HasSubstr("the keys stay as they were: "));
}

TEST_F(LiveKeysTest, AFolderThatIsNoneIsRefusedAtFirst) {
  EXPECT_THAT(LiveKeys::Open(temporary_.Join("none"), clock_),
              StatusIs(StatusCode::kNotFound, HasSubstr("kiln keys issue")));
}

}  // namespace
}  // namespace kiln
