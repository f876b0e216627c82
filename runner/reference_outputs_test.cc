#include "runner/reference_outputs.h"

#include <sys/mman.h>

#include <string_view>

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

UniqueFd MemoryFile() { return UniqueFd(memfd_create("outputs", MFD_CLOEXEC)); }

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string Text(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(ReferenceOutputs, HaveOneHalfForEachContent) {
  const UniqueFd file = MemoryFile();
  ASSERT_OK(AppendOutput(file, Bytes("a part of a lost child")));
  ASSERT_OK(ClearOutputs(file));
  for (const char* output : {"ab", "cde", "AB", "CDE"})
    ASSERT_OK(AppendOutput(file, Bytes(output)));
  ASSERT_OK_AND_ASSIGN(const MappedOutputs mapped, MappedOutputs::Map(file, 5));
  EXPECT_EQ(Text(mapped.half(Content::kTimed)), "abcde");
  EXPECT_EQ(Text(mapped.half(Content::kOther)), "ABCDE");
}

TEST(ReferenceOutputs, FilesOfAnotherSizeAreRefused) {
  const UniqueFd file = MemoryFile();
  ASSERT_OK(AppendOutput(file, Bytes("abc")));
  EXPECT_THAT(MappedOutputs::Map(file, 5),
              StatusIs(StatusCode::kInternal, HasSubstr("have 3 bytes, expected 10")));
  EXPECT_THAT(MappedOutputs::Map(UniqueFd(), 5),
              StatusIs(StatusCode::kInternal, HasSubstr("did not come")));
}

}  // namespace
}  // namespace kiln::runner
