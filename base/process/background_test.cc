#include "base/process/background.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

void WaitForEnd(pid_t child) {
  while (!BackgroundEnded(child)) absl::SleepFor(absl::Milliseconds(5));
}

TEST(Background, TheChildHasASessionOfItsOwnAndALog) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("kiln-background"));
  const std::string log = folder.Join("log");
  ASSERT_OK(WriteFile(log, "earlier\n"));
  ASSERT_OK_AND_ASSIGN(const pid_t child,
                       StartInBackground({"/bin/sh", "-c",
                                          "read x; echo \"out $x\"; echo err >&2; "
                                          "cut -d' ' -f6 /proc/$$/stat; ls /proc/$$/fd"},
                                         log));
  WaitForEnd(child);
  // The session is the sixth field.
  EXPECT_EQ(*ReadFile(log), fmt::format("earlier\nout \nerr\n{}\n0\n1\n2\n", child));
}

TEST(Background, AProgramThatIsNotThere) {
  EXPECT_THAT(Message(StartInBackground({"/no/such"}, "/dev/null").status()),
              testing::HasSubstr("cannot start /no/such"));
}

}  // namespace
}  // namespace kiln
