#include "runner/input_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace kiln::runner {
namespace {

Argument Input(DType dtype, std::vector<int64_t> shape) {
  Argument argument{.name = "x", .dtype = dtype, .shape = std::move(shape)};
  for (const int64_t extent : argument.shape) argument.elements *= extent;
  argument.bytes = argument.plain_bytes();
  return argument;
}

template <typename T>
std::vector<T> Values(const Argument& argument, Content content) {
  const UnsetBytes bytes = InputBytes(argument, 0, 7, content);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(InputValuesTest, TheContentsBeginAlikeAndGoOnOtherwise) {
  const Argument input = Input(DType::kFloat32, {100, 1000});
  const auto timed = Values<float>(input, Content::kTimed);
  const auto other = Values<float>(input, Content::kOther);
  const auto shared = static_cast<size_t>(SharedElements(input));
  EXPECT_EQ(shared, 4096u);
  EXPECT_TRUE(std::equal(timed.begin(), timed.begin() + 4096, other.begin()));
  size_t different = 0;
  for (size_t i = shared; i < timed.size(); ++i) different += timed[i] != other[i] ? 1 : 0;
  EXPECT_GT(different, timed.size() - shared - 10);
}

TEST(InputValuesTest, SmallInputsDifferTooAndKeepToTheirLimits) {
  Argument ids = Input(DType::kInt32, {64});
  ids.index_limit = 5;
  EXPECT_NE(Values<int32_t>(ids, Content::kTimed), Values<int32_t>(ids, Content::kOther));
  for (const int32_t id : Values<int32_t>(ids, Content::kOther)) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 5);
  }
  Argument one = Input(DType::kFloat32, {});
  one.range = ValueRange{2, 3};
  EXPECT_EQ(SharedElements(one), 0);
  EXPECT_NE(Values<float>(one, Content::kTimed), Values<float>(one, Content::kOther));
  EXPECT_THAT(Values<float>(one, Content::kOther)[0],
              testing::AllOf(testing::Ge(2), testing::Lt(3)));
}

TEST(InputValuesTest, RunsAreOfTheTimedContentAlone) {
  Argument ids = Input(DType::kInt32, {64});
  ids.range = ValueRange{.low = 0, .high = 8, .run = 8};
  const auto timed = Values<int32_t>(ids, Content::kTimed);
  for (size_t i = 0; i < timed.size(); ++i) EXPECT_EQ(timed[i], static_cast<int32_t>(i / 8));
  const auto other = Values<int32_t>(ids, Content::kOther);
  EXPECT_FALSE(std::is_sorted(other.begin(), other.end()));
  EXPECT_THAT(other, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(8))));
  Argument random = ids;
  random.range->run = 0;
  EXPECT_NE(ContentKey(ids, 0, 7, Content::kTimed), ContentKey(random, 0, 7, Content::kTimed));
}

TEST(InputValuesTest, LargeOnesAreEqualByAnyNumberOfThreads) {
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kFloat64}) {
    const Argument input = Input(dtype, {(int64_t{70} << 20) / DTypeBytes(dtype) + 5});
    for (const Content content : {Content::kTimed, Content::kOther}) {
      EXPECT_TRUE(InputBytes(input, 0, 7, content, 1) == InputBytes(input, 0, 7, content, 3))
          << DTypeName(dtype);
    }
  }
}

TEST(InputValuesTest, PackedInputsHaveTheSameElements) {
  Argument input = Input(DType::kFloat32, {4, 6});
  const auto plain = Values<float>(input, Content::kOther);
  input.packing =
      Packing{.shape = {4, 6},
              .dims = {{.axis = 1, .extent = 6, .step = 1}, {.axis = 0, .extent = 4, .step = 1}}};
  const auto packed = Values<float>(input, Content::kOther);
  ASSERT_EQ(packed.size(), 24u);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 6; ++j) EXPECT_EQ(packed[j * 4 + i], plain[i * 6 + j]);
  }
  EXPECT_NE(ContentKey(input, 0, 7, Content::kTimed), ContentKey(input, 0, 7, Content::kOther));
}

}  // namespace
}  // namespace kiln::runner
