#include "client/cli/jobs/owner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

#include "base/file/fd.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void Write(int fd, std::string_view text) {
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(OwnerTest, LinesComeWhole) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  Owner owner(pipe.read.get());
  EXPECT_TRUE(owner.exists());
  EXPECT_FALSE(owner.IsGone()) << "nothing to read is no end";
  EXPECT_THAT(owner.TakeLines(), IsEmpty());
  Write(pipe.write.get(), "resume 1\n\nres");
  EXPECT_FALSE(owner.IsGone());
  EXPECT_THAT(owner.TakeLines(), ElementsAre("resume 1", ""));
  Write(pipe.write.get(), "ume 2\n");
  pipe.write.Reset();
  EXPECT_TRUE(owner.IsGone());
  EXPECT_TRUE(owner.IsGone());
  EXPECT_THAT(owner.TakeLines(), ElementsAre("resume 2"));
}

TEST(OwnerTest, TextWithoutEndIsNotKept) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  Owner owner(pipe.read.get());
  const std::string text(4096, 'x');
  for (int i = 0; i < 100; ++i) {
    Write(pipe.write.get(), text);
    EXPECT_FALSE(owner.IsGone());
  }
  Write(pipe.write.get(), "\n");
  EXPECT_FALSE(owner.IsGone());
  EXPECT_THAT(owner.TakeLines(), IsEmpty());
}

TEST(OwnerTest, AFileAndAClosedDescriptorHaveNoOwner) {
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Owner owner(null.get());
  EXPECT_FALSE(owner.exists());
  EXPECT_FALSE(owner.IsGone());
  EXPECT_FALSE(Owner(-1).exists());
}

}  // namespace
}  // namespace kiln::client
