#include "base/keys/role.h"

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(RoleTest, NamesAreReadBack) {
  for (const Role role : kRoles) EXPECT_EQ(*ParseRole(RoleName(role)), role);
  EXPECT_EQ(RoleNames(), "read, submit, work, operate or admin");
}

TEST(RoleTest, OtherWordsAreRefusedWithTheRoles) {
  EXPECT_THAT(ParseRole("submitt"),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("there is no role 'submitt', did you mean submit?"),
                             HasSubstr("expected read, submit, work, operate or admin"))));
  for (const char* word : {"", "Read", "read ", "admin\n", "root"}) {
    EXPECT_THAT(ParseRole(word), StatusIs(StatusCode::kInvalidArgument, testing::_)) << word;
  }
  EXPECT_LT(Message(ParseRole(std::string(1 << 20, 'x')).status()).size(), 200u);
}

// Rows are the roles that are held, columns those that are needed, in the order of kRoles.
TEST(RoleTest, WhoMayDoWhat) {
  constexpr bool kMay[5][5] = {
      // read submit work operate admin
      {true, false, false, false, false},  // read
      {true, true, false, false, false},   // submit
      {true, false, true, false, false},   // work
      {true, true, false, true, false},    // operate
      {true, true, false, true, true},     // admin
  };
  for (size_t held = 0; held < kRoles.size(); ++held) {
    for (size_t needed = 0; needed < kRoles.size(); ++needed) {
      EXPECT_EQ(Permits(kRoles[held], kRoles[needed]), kMay[held][needed])
          << RoleName(kRoles[held]) << " for " << RoleName(kRoles[needed]);
    }
  }
}

TEST(RoleTest, OnlyDaemonsServe) {
  for (const Role role : kRoles) EXPECT_EQ(MayServe(role), role == Role::kWork) << RoleName(role);
}

}  // namespace
}  // namespace kiln
