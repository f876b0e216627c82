#include "compiler/ir/type.h"

#include "base/status_testing.h"

namespace kiln::ir {
namespace {
using testing::HasSubstr;

TEST(TypeTest, NamesParseBack) {
  for (Type type : {kBool, kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kFloat16,
                    kBFloat16, kFloat32, kFloat64}) {
    ASSERT_OK_AND_ASSIGN(const Type parsed, ParseType(TypeName(type)));
    EXPECT_EQ(parsed, type) << TypeName(type);
  }
  EXPECT_EQ(TypeName(kBFloat16), "bfloat16");
}

TEST(TypeTest, Bytes) {
  EXPECT_EQ(kBool.bytes(), 1);
  EXPECT_EQ(kInt8.bytes(), 1);
  EXPECT_EQ(kUInt16.bytes(), 2);
  EXPECT_EQ(kFloat16.bytes(), 2);
  EXPECT_EQ(kBFloat16.bytes(), 2);
  EXPECT_EQ(kFloat64.bytes(), 8);
}

TEST(TypeTest, UnknownNameIsRefused) {
  EXPECT_THAT(ParseType("float8"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("'float8'")));
  EXPECT_THAT(ParseType(""), StatusIs(StatusCode::kInvalidArgument, HasSubstr("float32, float16")));
}

}  // namespace
}  // namespace kiln::ir
