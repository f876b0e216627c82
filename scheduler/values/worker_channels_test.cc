#include "scheduler/values/worker_channels.h"

#include "base/status_testing.h"
#include "scheduler/values/worker_channel.h"

namespace kiln::scheduler {
namespace {

// Nobody listens at these addresses: a connection is made by its first call.
std::string Address(int number) { return fmt::format("127.0.0.1:{}", number); }

TEST(WorkerChannelsTest, AnAddressHasOneConnectionHoweverOftenItIsAskedFor) {
  FakeClock clock;
  WorkerChannels channels(clock);
  const auto first = channels.At(Address(1), {});
  EXPECT_EQ(first->address, Address(1));
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(channels.At(Address(1), {}), first);
  EXPECT_NE(channels.At(Address(2), {}), first);
  EXPECT_EQ(channels.size(), 2u);
}

// Workers of a fleet come and go, each at a port that no other one has had.
TEST(WorkerChannelsTest, ConnectionsToWorkersThatAreGoneAreClosed) {
  FakeClock clock;
  WorkerChannels channels(clock);
  const auto used = channels.At(Address(1), {});
  for (int i = 2; i < 500; ++i) {
    clock.Advance(absl::Seconds(60));
    channels.At(Address(i), {});
    EXPECT_EQ(channels.At(Address(1), {}), used);
    EXPECT_LE(channels.size(), WorkerChannels::kKeep_s / 60 + 3) << i;
  }
}

TEST(WorkerChannelsTest, AClosedConnectionIsStillItsHolders) {
  FakeClock clock;
  WorkerChannels channels(clock);
  const auto held = channels.At(Address(1), {});
  clock.Advance(absl::Seconds(2 * WorkerChannels::kKeep_s));
  channels.At(Address(2), {});
  EXPECT_EQ(channels.size(), 1u);
  EXPECT_NE(held->channel, nullptr);
  EXPECT_NE(channels.At(Address(1), {}), held);
}

}  // namespace
}  // namespace kiln::scheduler
