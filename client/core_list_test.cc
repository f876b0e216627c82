#include "client/core_list.h"

#include "base/status_testing.h"

namespace kiln::client {
namespace {

using Cores = std::vector<int>;
using testing::HasSubstr;

TEST(CoreListTest, IsReadAsItIsWritten) {
  for (const char* text : {"", "0", "0-3", "0-3,8", "1,3,5-6,65535"}) {
    ASSERT_OK_AND_ASSIGN(const Cores cores, ParseCoreList(text));
    EXPECT_EQ(CoreListText(cores), text);
  }
  ASSERT_OK_AND_ASSIGN(const Cores cores, ParseCoreList(" 8,0-2,1\n"));
  EXPECT_EQ(cores, (Cores{0, 1, 2, 8}));
}

TEST(CoreListTest, AnythingElseIsRefused) {
  for (const char* text :
       {"x", "1-", "-1", "3-1", "1,,2", "1 2", "65536", "0-99999999999", "1;2"}) {
    EXPECT_THAT(ParseCoreList(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("is no list of cores")))
        << text;
  }
}

}  // namespace
}  // namespace kiln::client
