#include "rpc/http/sessions.h"

#include <set>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

const auto kRefused = StatusIs(StatusCode::kUnauthenticated, HasSubstr("`kiln dashboard`"));

class SessionsTest : public testing::Test {
 protected:
  BrowserSessions::Options Options() {
    BrowserSessions::Options options;
    options.clock = &clock_;
    options.random_hex = [this](int digits) {
      EXPECT_EQ(digits, 64);
      return fmt::format("{:064x}", ++made_);
    };
    return options;
  }

  FakeClock clock_;
  int made_ = 0;
};

TEST_F(SessionsTest, ATokenOpensOneSession) {
  BrowserSessions sessions(Options());
  const std::string token = sessions.MakeToken({.name = "alice", .serial = "12"});
  // A token is no cookie.
  EXPECT_THAT(sessions.Find(token), kRefused);
  ASSERT_OK_AND_ASSIGN(const std::string cookie, sessions.Exchange(token));
  EXPECT_NE(cookie, token);
  EXPECT_THAT(sessions.Exchange(token),
              StatusIs(StatusCode::kUnauthenticated, HasSubstr("was used")));
  // A cookie is no token.
  EXPECT_THAT(sessions.Exchange(cookie), kRefused);
  ASSERT_OK_AND_ASSIGN(const BrowserSessions::Holder holder, sessions.Find(cookie));
  EXPECT_EQ(holder.name, "alice");
  EXPECT_EQ(holder.serial, "12");
}

TEST_F(SessionsTest, OtherTextsAreRefused) {
  BrowserSessions sessions(Options());
  sessions.MakeToken({.name = "alice"});
  for (const std::string& text : {std::string(), std::string("x"), std::string(64, '0'),
                                  std::string("\0", 1), std::string(100'000, 'a')}) {
    EXPECT_THAT(sessions.Exchange(text), kRefused);
    EXPECT_THAT(sessions.Find(text), kRefused);
  }
}

TEST_F(SessionsTest, TokensAndSessionsEnd) {
  BrowserSessions sessions(Options());
  const std::string early = sessions.MakeToken({.name = "alice"});
  const std::string late = sessions.MakeToken({.name = "alice"});
  clock_.Advance(sessions.token_time() - absl::Seconds(1));
  ASSERT_OK_AND_ASSIGN(const std::string cookie, sessions.Exchange(early));
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(sessions.Exchange(late), kRefused);
  clock_.Advance(sessions.session_time() - absl::Seconds(2));
  EXPECT_OK(sessions.Find(cookie));
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(sessions.Find(cookie), kRefused);
}

TEST_F(SessionsTest, ASessionEndsWithItsCertificate) {
  BrowserSessions sessions(Options());
  const std::string token =
      sessions.MakeToken({.name = "alice", .expires = clock_.Now() + absl::Hours(1)});
  ASSERT_OK_AND_ASSIGN(const std::string cookie, sessions.Exchange(token));
  clock_.Advance(absl::Hours(1));
  EXPECT_OK(sessions.Find(cookie));
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(sessions.Find(cookie),
              StatusIs(StatusCode::kUnauthenticated, HasSubstr("certificate")));
}

TEST_F(SessionsTest, NewOnesTakeThePlaceOfOldOnes) {
  BrowserSessions::Options options = Options();
  options.max = 5;
  options.max_of_holder = 2;
  BrowserSessions sessions(options);
  const auto open = [&](const std::string& name) {
    return *sessions.Exchange(sessions.MakeToken({.name = name}));
  };
  const std::string bob = open("bob");
  const std::string first = open("alice"), second = open("alice"), third = open("alice");
  EXPECT_THAT(sessions.Find(first), kRefused);
  EXPECT_OK(sessions.Find(second));
  EXPECT_OK(sessions.Find(third));
  // Whoever opens many closes his own.
  EXPECT_OK(sessions.Find(bob));
  for (const char* name : {"c", "d", "e"}) open(name);
  EXPECT_THAT(sessions.Find(bob), kRefused);
  EXPECT_OK(sessions.Find(third));
}

TEST(RandomSessionsTest, TokensAreOf256BitsAndDiffer) {
  BrowserSessions sessions({});
  std::set<std::string> tokens;
  for (int i = 0; i < 10; ++i) tokens.insert(sessions.MakeToken({.name = "alice"}));
  EXPECT_EQ(tokens.size(), 10);
  for (const std::string& token : tokens) {
    EXPECT_EQ(token.size(), 64);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  }
}

}  // namespace
}  // namespace kiln
