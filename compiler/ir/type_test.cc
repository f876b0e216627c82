#include "compiler/ir/type.h"

#include "base/status_testing.h"

namespace kiln::ir {
namespace {
using testing::HasSubstr;

TEST(TypeTest, NamesParseBack) {
  for (Type type : {kBool, kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64,
                    kFloat16, kBFloat16, kFloat8E4M3, kFloat8E5M2, kFloat32, kFloat64}) {
    ASSERT_OK_AND_ASSIGN(const Type parsed, ParseType(TypeName(type)));
    EXPECT_EQ(parsed, type) << TypeName(type);
  }
  EXPECT_EQ(TypeName(kBFloat16), "bfloat16");
  EXPECT_EQ(TypeName(kFloat8E4M3), "float8_e4m3fn");
  EXPECT_EQ(TypeName(kFloat8E5M2), "float8_e5m2");
}

TEST(TypeTest, Bytes) {
  EXPECT_EQ(kBool.bytes(), 1);
  EXPECT_EQ(kInt8.bytes(), 1);
  EXPECT_EQ(kUInt16.bytes(), 2);
  EXPECT_EQ(kUInt64.bytes(), 8);
  EXPECT_EQ(kFloat16.bytes(), 2);
  EXPECT_EQ(kBFloat16.bytes(), 2);
  EXPECT_EQ(kFloat8E4M3.bytes(), 1);
  EXPECT_EQ(kFloat8E5M2.bytes(), 1);
  EXPECT_EQ(kFloat64.bytes(), 8);
}

TEST(TypeTest, FloatsAndShortOnes) {
  for (Type type : {kFloat16, kBFloat16, kFloat8E4M3, kFloat8E5M2}) {
    EXPECT_TRUE(type.is_float() && type.is_short_float()) << TypeName(type);
    EXPECT_FALSE(type.is_int() || type.is_bool() || type.is_unsigned()) << TypeName(type);
  }
  for (Type type : {kFloat32, kFloat64}) EXPECT_TRUE(type.is_float() && !type.is_short_float());
  for (Type type : {kBool, kInt8, kUInt8, kInt16}) {
    EXPECT_FALSE(type.is_float() || type.is_short_float()) << TypeName(type);
  }
}

TEST(TypeTest, UnknownNameIsRefused) {
  EXPECT_THAT(ParseType("float8"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("'float8'")));
  EXPECT_THAT(ParseType(""), StatusIs(StatusCode::kInvalidArgument, HasSubstr("float32, float16")));
}

}  // namespace
}  // namespace kiln::ir
