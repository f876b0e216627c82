#include "runtime/shared_object.h"

#include <sys/resource.h>

#include <vector>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::runtime {
namespace {

using ::testing::HasSubstr;

// The library's `count` returns 1, 2, ... since the object was loaded.
int Count(const SharedObject& object) {
  const StatusOr<void*> count = object.Find("count");
  KILN_CHECK(count.ok(), "{}", Message(count.status()));
  return reinterpret_cast<int (*)()>(*count)();
}

class LoadedTwiceTest : public testing::TestWithParam<const char*> {
 protected:
  StatusOr<std::unique_ptr<SharedObject>> Load() const { return SharedObject::Load(*elf_); }
  const StatusOr<std::string> elf_ = ReadFile(GetParam());
};

// Each load is an object of its own, whatever objects with the same bytes still exist, and whatever
// descriptors they came from.
TEST_P(LoadedTwiceTest, EachLoadIsAnObjectOfItsOwn) {
  ASSERT_OK(elf_.status());
  // With few descriptors their numbers are soon used again.
  rlimit few{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &few), 0);
  few.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<std::unique_ptr<SharedObject>> held;
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK_AND_ASSIGN(auto object, Load());
    EXPECT_EQ(Count(*object), 1);
    EXPECT_EQ(Count(*object), 2);
    if (i % 3 == 0) held.push_back(std::move(object));
  }
  for (const auto& object : held) EXPECT_EQ(Count(*object), 3);
}

// A library that is never unloaded, like a program with thread-local variables, must not be taken
// for the next one.
INSTANTIATE_TEST_SUITE_P(Libraries, LoadedTwiceTest,
                         testing::Values("runtime/counting.so", "runtime/counting_for_ever.so"),
                         [](const auto& info) { return info.index == 0 ? "Plain" : "NoDelete"; });

TEST(SharedObjectTest, SaysWhatIsWrong) {
  EXPECT_THAT(SharedObject::Load(""),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is empty")));
  EXPECT_THAT(SharedObject::Load("no ELF file"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("file too short")));
  ASSERT_OK_AND_ASSIGN(const std::string elf, ReadFile("runtime/counting.so"));
  ASSERT_OK_AND_ASSIGN(const auto object, SharedObject::Load(elf));
  EXPECT_THAT(object->Find("none"), StatusIs(StatusCode::kNotFound, HasSubstr("export none")));
}

}  // namespace
}  // namespace kiln::runtime
