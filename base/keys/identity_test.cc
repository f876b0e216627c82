#include "base/keys/identity.h"

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

TEST(IdentityTest, UrisAreReadBack) {
  EXPECT_EQ(MemberUri({"alice", Role::kSubmit}), "kiln:submit/alice");
  for (const Role role : kRoles) {
    for (const char* name : {"a", "box1.example.org", "alice@example.org", "A_b-c", "0"}) {
      const Member member{name, role};
      EXPECT_EQ(*ParseMemberUri(MemberUri(member)), member);
    }
  }
}

TEST(IdentityTest, OtherUrisAreRefused) {
  for (const char* uri :
       {"", "kiln:", "kiln:submit", "kiln:/alice", "kiln:submit/", "kiln:Submit/alice",
        "kiln:submit/alice/bob", "kiln:submit/../alice", "kiln:submit//alice", "KILN:submit/alice",
        "kiln:submit/alice ", "spiffe://farm/submit/alice", "kiln:submit/\xff", "/kiln:submit"}) {
    EXPECT_THAT(ParseMemberUri(uri), StatusIs(StatusCode::kInvalidArgument, testing::_)) << uri;
  }
  EXPECT_THAT(ParseMemberUri("https://kiln/"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected kiln:ROLE/NAME")));
}

TEST(IdentityTest, NamesAreWordsOfAShellAndNamesOfFiles) {
  for (const char* name : {"", ".", "..", "../x", "a/b", "/", "-rf", ".hidden", "_", "@", "a b",
                           "a\nb", "a'b", "$HOME", "a*", "a\\b", "\xc3\xa4", "a:b", "a,b"}) {
    EXPECT_THAT(CheckMemberName(name),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected 1 to 64 letters")))
        << name;
  }
  EXPECT_THAT(CheckMemberName(std::string_view("a\0b", 3)),
              StatusIs(StatusCode::kInvalidArgument, testing::_));
  EXPECT_OK(CheckMemberName(std::string(64, 'a')));
  const Status long_name = CheckMemberName(std::string(100'000, 'a'));
  EXPECT_THAT(long_name,
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has 100000 characters")));
  EXPECT_LT(Message(long_name).size(), 300u);
}

}  // namespace
}  // namespace kiln
