#include "base/server/connection_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr ConnectionList::Limits kFew = {.most = 6,
                                         .max_unverified = 4,
                                         .max_unverified_of_host = 2,
                                         .longest_unverified = absl::Seconds(10)};

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

constexpr auto kNoCertificate = [] { return std::string(); };

std::string Peer(int id) { return "h:" + std::to_string(id); }

TEST(ConnectionListTest, KeepsTheCertificateOfAVerifiedConnectionUntilItsEnd) {
  ConnectionList list(kFew);
  for (int id = 1; id <= 4; ++id) list.Add(id, Peer(id), std::to_string(id), At(0));
  const auto of = [](const char* text) { return [text] { return std::string(text); }; };
  list.MarkVerified(Peer(1), of("alice"));
  list.MarkVerified(Peer(2), of("bob"));
  list.MarkVerified(Peer(3), of("alice"));
  list.MarkVerified(Peer(4), kNoCertificate);
  // A connection has one certificate, which is not asked for again.
  list.MarkVerified(Peer(2), of("eve"));
  EXPECT_THAT(list.ByCertificate(),
              ElementsAre(Pair("alice", ElementsAre(1, 3)), Pair("bob", ElementsAre(2))));
  list.Remove(1);
  list.Remove(2);
  EXPECT_THAT(list.ByCertificate(), ElementsAre(Pair("alice", ElementsAre(3))));
}

TEST(ConnectionListTest, ANewConnectionReplacesTheOldestUnverifiedOneOfItsHost) {
  ConnectionList list(kFew);
  EXPECT_THAT(list.Add(1, Peer(1), "a", At(0)), IsEmpty());
  EXPECT_THAT(list.Add(2, Peer(2), "a", At(0)), IsEmpty());
  EXPECT_THAT(list.Add(3, Peer(3), "b", At(0)), IsEmpty());
  EXPECT_THAT(list.Add(4, Peer(4), "a", At(0)), ElementsAre(1));
  EXPECT_THAT(list.Add(5, Peer(5), "a", At(0)), ElementsAre(2));
  EXPECT_EQ(list.unverified(), 3u);
  // The connections that were told to go are not gone yet.
  EXPECT_EQ(list.size(), 5u);
}

TEST(ConnectionListTest, ANewConnectionReplacesTheOldestUnverifiedOneOfAll) {
  ConnectionList list(kFew);
  for (int id = 1; id <= 4; ++id) list.Add(id, Peer(id), "h" + std::to_string(id), At(0));
  EXPECT_THAT(list.Add(5, Peer(5), "h5", At(0)), ElementsAre(1));
}

TEST(ConnectionListTest, KnownCallersStay) {
  ConnectionList list(kFew);
  for (int id = 1; id <= 6; ++id) {
    EXPECT_THAT(list.Add(id, Peer(id), "a", At(0)), IsEmpty());
    list.MarkVerified(Peer(id), kNoCertificate);
  }
  EXPECT_EQ(list.unverified(), 0u);
  EXPECT_THAT(list.Overdue(At(1'000'000)), IsEmpty());
  // There is no room, and no unverified connection to close.
  EXPECT_THAT(list.Add(7, Peer(7), "b", At(0)), ElementsAre(7));
  list.Remove(7);
  list.Remove(3);
  EXPECT_THAT(list.Add(8, Peer(8), "b", At(0)), IsEmpty());
}

TEST(ConnectionListTest, UnverifiedConnectionsAreClosedAfterAWhile) {
  ConnectionList list(kFew);
  list.Add(1, Peer(1), "a", At(0));
  list.Add(2, Peer(2), "b", At(5));
  list.Add(3, Peer(3), "c", At(0));
  list.MarkVerified(Peer(3), kNoCertificate);
  EXPECT_THAT(list.Overdue(At(9)), IsEmpty());
  EXPECT_THAT(list.Overdue(At(10)), ElementsAre(1));
  // An overdue connection is reported once.
  EXPECT_THAT(list.Overdue(At(10)), IsEmpty());
  EXPECT_THAT(list.Overdue(At(15)), ElementsAre(2));
}

TEST(ConnectionListTest, ANumberMayBeUsedAgain) {
  ConnectionList list(kFew);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(list.Add(1, Peer(i), "a", At(i)), IsEmpty());
    list.Remove(1);
  }
  EXPECT_EQ(list.size(), 0u);
  EXPECT_EQ(list.unverified(), 0u);
}

}  // namespace
}  // namespace kiln
