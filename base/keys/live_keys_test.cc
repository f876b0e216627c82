#include "base/keys/live_keys.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/key_folder.h"
#include "base/log.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
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

  Revocations List(int64_t number) { return *farm_.authority().Revoke({}, number, clock_.Now()); }
  // Writes a list as the authority does.
  void WriteList(int64_t number) {
    ASSERT_OK(WriteRevocations(farm_.FolderOf("box1"), List(number),
                               farm_.authority().certificate(), clock_));
  }
  int64_t NumberOnDisk() {
    return ReadRevocations(farm_.FolderOf("box1"), farm_.authority().certificate())->number();
  }
  int64_t NumberNow() { return live_->Now()->revoked.number(); }

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

// The scheduler of a box gets list 6 from the tracker, when the authority has written list 7 into
// their folder already.
TEST_F(LiveKeysTest, AnOlderListTakesNoPlaceOnDisk) {
  WriteList(5);
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_EQ(NumberNow(), 5);
  WriteList(7);
  live_->TakeRevocations(List(6).ToPem());
  EXPECT_EQ(NumberOnDisk(), 7);
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_EQ(NumberNow(), 7);
  live_->TakeRevocations(List(8).ToPem());
  EXPECT_EQ(NumberNow(), 8) << "it holds at once";
  EXPECT_EQ(NumberOnDisk(), 8);
}

TEST_F(LiveKeysTest, AListHoldsWhereTheFolderCannotBeWritten) {
  const std::string folder = farm_.FolderOf("box1"), away = temporary_.Join("away");
  ASSERT_EQ(std::rename(folder.c_str(), away.c_str()), 0);
  live_->TakeRevocations(List(6).ToPem());
  EXPECT_EQ(NumberNow(), 6);
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_EQ(NumberNow(), 6);
  live_->TakeRevocations(List(6).ToPem());
  EXPECT_THAT(log_, testing::Contains(HasSubstr("list 6 of revoked certificates holds in this "
                                                "process alone")));
  // It is written as soon as that works.
  ASSERT_EQ(std::rename(away.c_str(), folder.c_str()), 0);
  EXPECT_EQ(NumberOnDisk(), 0);
  live_->TakeRevocations(List(6).ToPem());
  EXPECT_EQ(NumberOnDisk(), 6);
}

// An ordinary user whose folder belongs to another one.
TEST_F(LiveKeysTest, AListHoldsWhereTheFolderIsReadOnly) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes into every folder";
  chmod(farm_.FolderOf("box1").c_str(), 0500);
  live_->TakeRevocations(List(6).ToPem());
  EXPECT_EQ(NumberNow(), 6);
  EXPECT_EQ(NumberOnDisk(), 0);
  chmod(farm_.FolderOf("box1").c_str(), 0700);
}

TEST_F(LiveKeysTest, AnOlderListThatComesBackWithACopyDoesNotHold) {
  const std::string old_list = *ReadFile(farm_.FolderOf("box1/revoked.pem"));
  WriteList(7);
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_EQ(NumberNow(), 7);
  ASSERT_OK(WriteFileAtomically(farm_.FolderOf("box1/revoked.pem"), old_list));
  // The rest of the folder is read all the same.
  ASSERT_OK_AND_ASSIGN(const Issued renewed, farm_.Renew("box1", 20));
  ASSERT_EQ(NumberOnDisk(), 0);
  EXPECT_EQ(SerialNow(), renewed.identity.serial);
  EXPECT_EQ(NumberNow(), 7);
  EXPECT_THAT(log_, testing::Contains(AllOf(HasSubstr("has list 0 of revoked certificates"),
                                            HasSubstr("list 7 goes on to hold"))));
  live_->TakeRevocations(List(7).ToPem());
  EXPECT_EQ(NumberOnDisk(), 7);
}

// A folder that has moved to another farm has that farm's list, whatever its number is.
TEST_F(LiveKeysTest, AnotherAuthorityHasItsOwnNumbers) {
  WriteList(7);
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_EQ(NumberNow(), 7);
  ASSERT_OK_AND_ASSIGN(AuthorityFolder other,
                       AuthorityFolder::Init(temporary_.Join("other"), {&clock_, nullptr}));
  ASSERT_OK(other.Issue({"box1", Role::kWork}, 10, false));
  ASSERT_OK_AND_ASSIGN(const KeyFolder moved, ReadKeyFolder(other.FolderOf("box1")));
  ASSERT_OK(WriteKeyFolder(farm_.FolderOf("box1"), moved, clock_));
  EXPECT_EQ(SerialNow(), moved.certificate.Serial());
  EXPECT_EQ(NumberNow(), 0);
}

TEST_F(LiveKeysTest, AFolderThatIsNoneIsRefusedAtFirst) {
  EXPECT_THAT(LiveKeys::Open(temporary_.Join("none"), clock_),
              StatusIs(StatusCode::kNotFound, HasSubstr("kiln keys issue")));
}

}  // namespace
}  // namespace kiln
