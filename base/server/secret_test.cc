#include "base/server/secret.h"

#include <sys/stat.h>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SecretTest : public testing::Test {
 protected:
  StatusOr<Secret> Read(std::string_view content, int mode = 0600) {
    const std::string path = folder_.Join("secret");
    KILN_RETURN_IF_ERROR(RemoveFile(path));
    KILN_RETURN_IF_ERROR(WriteFile(path, content));
    chmod(path.c_str(), mode);
    return Secret::Read(path);
  }

  TempDir folder_ = *TempDir::Make("secret-test");
};

TEST_F(SecretTest, IsTheFirstLineOfItsFile) {
  for (const char* content : {"0123456789abcdef", "0123456789abcdef\n", "0123456789abcdef\r\n",
                              "0123456789abcdef\nnotes about it\n"}) {
    ASSERT_OK_AND_ASSIGN(const Secret secret, Read(content));
    EXPECT_EQ(secret.text(), "0123456789abcdef");
  }
}

TEST_F(SecretTest, OtherFilesAreRefusedWithWhatToDo) {
  EXPECT_THAT(Secret::Read(folder_.Join("none")),
              StatusIs(StatusCode::kNotFound, HasSubstr("cannot read the secret in")));
  const auto refused = [](std::string_view why) {
    return StatusIs(StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr(std::string(why)), HasSubstr("openssl rand -hex 32")));
  };
  EXPECT_THAT(Read(""), refused("has 0 characters, expected 16 to 1024"));
  EXPECT_THAT(Read("short\n"), refused("has 5 characters"));
  EXPECT_THAT(Read(std::string(1025, 'x')), refused("has 1025 characters"));
  EXPECT_THAT(Read("a pass phrase of words"), refused("a space"));
  EXPECT_THAT(Read("0123456789abcdef\xff"), refused("does not print"));
}

TEST_F(SecretTest, AnyBitForOthersIsRefused) {
  for (int mode = 1; mode <= 077; ++mode) {
    EXPECT_THAT(Read("0123456789abcdef", 0600 | mode),
                StatusIs(StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(fmt::format("has mode 0{:o}", 0600 | mode)),
                               HasSubstr("expected none of these bits: `chmod 600 "))));
  }
  for (const int mode : {0400, 0600, 0700}) EXPECT_OK(Read("0123456789abcdef", mode));
}

// A pipe is refused without waiting for its other end.
TEST_F(SecretTest, WhatIsNoFileIsRefused) {
  const std::string pipe = folder_.Join("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto refused = [](std::string_view kind) {
    return StatusIs(StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr("the secret must be in a file"), HasSubstr(std::string(kind)),
                          HasSubstr("openssl rand -hex 32")));
  };
  EXPECT_THAT(Secret::Read(pipe), refused("is a named pipe"));
  EXPECT_THAT(Secret::Read(folder_.path()), refused("is a folder"));
  EXPECT_THAT(Secret::Read("/dev/zero"), refused("is a device"));
}

TEST_F(SecretTest, MatchesItselfOnly) {
  ASSERT_OK_AND_ASSIGN(const Secret secret, Read("0123456789abcdef"));
  EXPECT_TRUE(secret.Matches("0123456789abcdef"));
  for (const char* other : {"", "0", "0123456789abcdeg", "0123456789abcdef0", "0123456789abcde"}) {
    EXPECT_FALSE(secret.Matches(other)) << other;
  }
}

TEST_F(SecretTest, RandomOnesDifferAndCanBeRead) {
  const Secret one = Secret::Random(), two = Secret::Random();
  EXPECT_NE(one.text(), two.text());
  ASSERT_OK_AND_ASSIGN(const Secret read, Read(one.text()));
  EXPECT_TRUE(one.Matches(read.text()));
  EXPECT_TRUE(Secret().empty());
  EXPECT_FALSE(one.empty());
}

}  // namespace
}  // namespace kiln
