#include "base/file/private_file.h"

#include <sys/stat.h>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr PrivateContent kDiary{"diary", "write one with `vi`"};

int ModeOf(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
}

class PrivateFileTest : public testing::Test {
 protected:
  StatusOr<std::string> Read(int mode, size_t max_bytes = 100) {
    KILN_RETURN_IF_ERROR(WriteFileAtomically(path_, "dear diary", 0600));
    chmod(path_.c_str(), mode);
    return ReadPrivateFile(path_, kDiary, max_bytes);
  }

  const TempDir folder_ = *TempDir::Make("private-file-test");
  const std::string path_ = folder_.Join("a diary");
};

TEST_F(PrivateFileTest, ReadsTheFileOrItsStart) {
  EXPECT_EQ(*Read(0600), "dear diary");
  EXPECT_EQ(*Read(0400), "dear diary");
  EXPECT_EQ(*Read(0600, 4), "dear");
}

TEST_F(PrivateFileTest, NamesTheContentAndTheRemedy) {
  EXPECT_THAT(ReadPrivateFile(folder_.Join("none"), kDiary, 100),
              StatusIs(StatusCode::kNotFound, HasSubstr("cannot read the diary in")));
  EXPECT_THAT(Read(0640), StatusIs(StatusCode::kFailedPrecondition,
                                   AllOf(HasSubstr("the file of the diary, "),
                                         HasSubstr("has mode 0640, which gives its group or others "
                                                   "040"),
                                         HasSubstr("`chmod 600 '"))));
  EXPECT_THAT(ReadPrivateFile(folder_.path(), kDiary, 100),
              StatusIs(StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("the diary must be in a file"), HasSubstr("is a folder"),
                             HasSubstr("write one with `vi`"))));
}

TEST_F(PrivateFileTest, FoldersAreForTheirOwnerWhateverTheUmask) {
  const std::string inner = folder_.Join("outer/inner");
  const mode_t before = umask(0);
  EXPECT_OK(MakePrivateDir(inner));
  umask(before);
  EXPECT_EQ(ModeOf(inner), 0700);
  // It exists.
  EXPECT_OK(MakePrivateDir(inner));
  EXPECT_OK(CheckPrivateDir(inner));
  chmod(inner.c_str(), 0710);
  EXPECT_THAT(CheckPrivateDir(inner),
              StatusIs(StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("has mode 0710"), HasSubstr("`chmod 700 "))));
  EXPECT_THAT(CheckPrivateDir(folder_.Join("none")), StatusIs(StatusCode::kNotFound, testing::_));
  ASSERT_OK(WriteFile(folder_.Join("file"), ""));
  EXPECT_THAT(MakePrivateDir(folder_.Join("file")),
              StatusIs(testing::Ne(StatusCode::kOk), HasSubstr("cannot create folder")));
}

}  // namespace
}  // namespace kiln
