#include "base/keys/key_folder.h"

#include <sys/stat.h>

#include <thread>
#include <vector>

#include "base/file/file.h"
#include "base/keys/keys_testing.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class KeyFolderTest : public testing::Test {
 protected:
  KeyFolder Make(const Authority& authority, const std::string& name) const {
    PrivateKey key = *PrivateKey::Make();
    Certificate certificate =
        *authority.Issue({name, Role::kWork}, key, 10, "00000000000000000001", kTestNow);
    return {certificate, key, authority.certificate(), *authority.Revoke({}, 0, kTestNow)};
  }
  Status Write(const KeyFolder& folder) const { return WriteKeyFolder(path_, folder); }
  Status ReadStatus() const { return ReadKeyFolder(path_).status(); }
  std::string PathOf(const char* file) const { return JoinPath(path_, file); }

  const TempDir temporary_ = *TempDir::Make("key-folder-test");
  const std::string path_ = temporary_.Join("box1");
  const Authority authority_ = TestAuthority();
};

TEST_F(KeyFolderTest, IsReadAsItWasWritten) {
  const KeyFolder made = Make(authority_, "box1");
  const mode_t before = umask(0);
  ASSERT_OK(Write(made));
  umask(before);
  ASSERT_OK_AND_ASSIGN(const KeyFolder read, ReadKeyFolder(path_));
  EXPECT_TRUE(read.certificate.Equals(made.certificate));
  EXPECT_TRUE(read.authority.Equals(authority_.certificate()));
  EXPECT_TRUE(read.key.Matches(made.certificate));
  EXPECT_EQ(read.revoked.number(), 0);
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(PathOf("identity.pem").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(KeyFolderTest, ARenewalReplacesKeyAndCertificateAtOnce) {
  ASSERT_OK(Write(Make(authority_, "box1")));
  const KeyFolder newer = Make(authority_, "box1");
  ASSERT_OK(Write(newer));
  ASSERT_OK_AND_ASSIGN(const KeyFolder read, ReadKeyFolder(path_));
  EXPECT_TRUE(read.key.Matches(newer.certificate));
}

TEST_F(KeyFolderTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(ReadStatus(), StatusIs(StatusCode::kNotFound,
                                     AllOf(HasSubstr("box1/identity.pem"),
                                           HasSubstr("`kiln keys issue NAME --role ROLE`"))));
  for (const char* file : {"authority.pem", "revoked.pem"}) {
    ASSERT_OK(Write(Make(authority_, "box1")));
    ASSERT_OK(RemoveFile(PathOf(file)));
    EXPECT_THAT(ReadStatus(),
                StatusIs(StatusCode::kNotFound,
                         AllOf(HasSubstr(file), HasSubstr("expected a folder of keys"))));
  }
}

TEST_F(KeyFolderTest, DamagedFilesAreNamedAndNotShown) {
  const KeyFolder made = Make(authority_, "box1");
  for (const char* file : {"identity.pem", "authority.pem", "revoked.pem"}) {
    ASSERT_OK(Write(made));
    ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(PathOf(file)));
    for (const size_t size : {size_t{0}, size_t{1}, text.size() / 3, text.size() - 30}) {
      ASSERT_OK(WriteFile(PathOf(file), text.substr(0, size)));
      EXPECT_THAT(ReadStatus(),
                  StatusIs(StatusCode::kDataLoss, AllOf(HasSubstr(file), HasSubstr("anew"),
                                                        Not(HasSubstr(text.substr(40, 20))))))
          << size;
    }
  }
}

TEST_F(KeyFolderTest, PartsThatDoNotBelongTogether) {
  const KeyFolder made = Make(authority_, "box1"), other = Make(TestAuthority("bb"), "box2");
  KeyFolder mixed = made;
  mixed.key = other.key;
  ASSERT_OK(Write(mixed));
  EXPECT_THAT(ReadStatus(),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("the certificate of 'box1' with the key of another one")));
  ASSERT_OK(Write(made));
  ASSERT_OK(WriteFile(PathOf("revoked.pem"), other.revoked.ToPem()));
  EXPECT_THAT(ReadStatus(), StatusIs(StatusCode::kFailedPrecondition,
                                     HasSubstr("is not signed by the authority 'Kiln farm aa'")));
  mixed = made;
  mixed.authority = made.certificate;
  ASSERT_OK(Write(mixed));
  EXPECT_THAT(ReadStatus(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("is no authority of a farm")));
}

TEST_F(KeyFolderTest, NoListTakesThePlaceOfANewerOne) {
  KeyFolder folder = Make(authority_, "box1");
  ASSERT_OK(Write(folder));
  const auto list = [&](const Authority& authority, int64_t number) {
    return *authority.Revoke({}, number, kTestNow);
  };
  const auto write = [&](const Revocations& revoked) {
    return WriteRevocations(path_, revoked, folder.authority);
  };
  const auto number = [&] { return ReadRevocations(path_, folder.authority)->number(); };
  ASSERT_OK(write(list(authority_, 7)));
  EXPECT_EQ(number(), 7);
  for (const int64_t older : {6, 7, 0}) {
    ASSERT_OK(write(list(authority_, older)));
    EXPECT_EQ(number(), 7) << older;
  }
  // A renewal that was begun before writes the list of that time.
  folder.revoked = list(authority_, 5);
  ASSERT_OK(Write(folder));
  EXPECT_EQ(number(), 7);
  // Everything but a list of this authority gives way to any.
  ASSERT_OK(WriteFile(PathOf("revoked.pem"), "half a list"));
  ASSERT_OK(write(list(authority_, 1)));
  EXPECT_EQ(number(), 1);
  ASSERT_OK(WriteFile(PathOf("revoked.pem"), list(TestAuthority("bb"), 9).ToPem()));
  ASSERT_OK(write(list(authority_, 2)));
  EXPECT_EQ(number(), 2);
}

TEST_F(KeyFolderTest, ProcessesThatWriteListsAtOnceLeaveTheNewest) {
  const KeyFolder folder = Make(authority_, "box1");
  ASSERT_OK(Write(folder));
  constexpr int kWriters = 4, kLists = 12;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      for (int number = 1 + i; number <= kLists; number += kWriters) {
        EXPECT_OK(
            WriteRevocations(path_, *authority_.Revoke({}, number, kTestNow), folder.authority));
        EXPECT_GE(ReadRevocations(path_, folder.authority)->number(), number);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ReadRevocations(path_, folder.authority)->number(), kLists);
}

TEST_F(KeyFolderTest, AnyBitForOthersOnTheKeyIsRefused) {
  ASSERT_OK(Write(Make(authority_, "box1")));
  const std::string path = PathOf("identity.pem");
  for (const int mode : {0604, 0640, 0601, 0666}) {
    chmod(path.c_str(), mode);
    EXPECT_THAT(ReadStatus(), StatusIs(StatusCode::kFailedPrecondition,
                                       AllOf(HasSubstr("the file of the private key"),
                                             HasSubstr("`chmod 600 "))));
  }
  chmod(path.c_str(), 0400);
  EXPECT_OK(ReadStatus());
}

}  // namespace
}  // namespace kiln
