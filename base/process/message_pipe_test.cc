#include "base/process/message_pipe.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"
#include "base/numbers/rng.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

class MessagePipeTest : public testing::Test {
 protected:
  static constexpr size_t kMaxBytes = 8 << 20;

  void SetUp() override {
    auto pair = MakeSocketPair();
    ASSERT_OK(pair);
    near_ = MessagePipe(std::move(pair->first), kMaxBytes);
    far_ = MessagePipe(std::move(pair->second), kMaxBytes);
  }

  // Writes bytes that need not be a message.
  void WriteRaw(std::string_view bytes) {
    ASSERT_EQ(write(far_.fd(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  MessagePipe near_, far_;
};

TEST_F(MessagePipeTest, MessagesArriveWholeAndInOrder) {
  const std::vector<std::string> messages = {"one", "", std::string("\0\xff", 2), "four"};
  for (const std::string& message : messages) ASSERT_OK(near_.Write(message));
  for (const std::string& message : messages) {
    ASSERT_OK_AND_ASSIGN(std::string read, far_.Read());
    EXPECT_EQ(read, message);
  }
}

TEST_F(MessagePipeTest, TheFormIsLengthThenBytes) {
  ASSERT_OK(near_.Write("abc"));
  char bytes[16];
  ASSERT_EQ(read(far_.fd(), bytes, sizeof(bytes)), 7);
  EXPECT_EQ(std::string_view(bytes, 7), std::string_view("\3\0\0\0abc", 7));
}

TEST_F(MessagePipeTest, RandomSizesBothWaysAtOnce) {
  const uint64_t seed = 11;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  auto message = [&](uint64_t stream, int i) {
    Rng rng(SplitSeed(seed + stream, i));
    const int64_t size = i % 50 == 0 ? UniformInt(rng, kMaxBytes) : UniformInt(rng, 3000);
    return std::string(size, static_cast<char>(rng()));
  };
  constexpr int kCount = 200;
  auto send = [&](MessagePipe& pipe, uint64_t stream) {
    for (int i = 0; i < kCount; ++i) EXPECT_OK(pipe.Write(message(stream, i)));
  };
  auto receive = [&](MessagePipe& pipe, uint64_t stream) {
    for (int i = 0; i < kCount; ++i) {
      StatusOr<std::string> read = pipe.Read(absl::Seconds(20));
      ASSERT_OK(read);
      ASSERT_TRUE(*read == message(stream, i)) << i;
    }
  };
  std::jthread a([&] { send(near_, 1); }), b([&] { send(far_, 2); });
  std::jthread c([&] { receive(near_, 2); });
  receive(far_, 1);
}

TEST_F(MessagePipeTest, CloseBetweenMessagesIsTheNormalEnd) {
  ASSERT_OK(far_.Write("last"));
  far_.Close();
  ASSERT_OK_AND_ASSIGN(std::string read, near_.Read());
  EXPECT_EQ(read, "last");
  EXPECT_TRUE(IsEndOfPipe(near_.Read().status()));
  EXPECT_TRUE(IsEndOfPipe(near_.Read().status()));
}

TEST_F(MessagePipeTest, CloseWithinAMessageIsDataLoss) {
  WriteRaw(std::string_view("\5\0\0\0ab", 6));
  far_.Close();
  EXPECT_THAT(near_.Read(), StatusIs(StatusCode::kDataLoss, HasSubstr("within a message")));
}

TEST_F(MessagePipeTest, CloseWithinALengthIsDataLoss) {
  WriteRaw(std::string_view("\5\0", 2));
  far_.Close();
  EXPECT_THAT(near_.Read(), StatusIs(StatusCode::kDataLoss, HasSubstr("within a message")));
}

TEST_F(MessagePipeTest, ADeadlineLosesNothing) {
  const double start = Clock::Real().MonotonicSeconds();
  EXPECT_THAT(near_.Read(absl::Milliseconds(30)),
              StatusIs(StatusCode::kDeadlineExceeded, testing::_));
  EXPECT_GE(Clock::Real().MonotonicSeconds() - start, 0.025);
  const std::string_view bytes("\5\0\0\0hello", 9);
  for (char c : bytes) {
    EXPECT_THAT(near_.Read(absl::ZeroDuration()),
                StatusIs(StatusCode::kDeadlineExceeded, testing::_));
    WriteRaw({&c, 1});
  }
  ASSERT_OK_AND_ASSIGN(std::string read, near_.Read(absl::ZeroDuration()));
  EXPECT_EQ(read, "hello");
}

TEST_F(MessagePipeTest, ADescriptorGoesAlong) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  for (const size_t bytes : {size_t{0}, size_t{5}, kMaxBytes}) {
    std::thread writer([&] {
      EXPECT_OK(near_.Write(std::string(bytes, 'x'), absl::Seconds(10), pipe.write.get()));
      EXPECT_OK(near_.Write("without"));
    });
    UniqueFd received;
    ASSERT_OK_AND_ASSIGN(const std::string message, far_.Read(absl::Seconds(10), &received));
    EXPECT_EQ(message.size(), bytes);
    ASSERT_TRUE(received.valid());
    EXPECT_NE(fcntl(received.get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(write(received.get(), "y", 1), 1);
    char byte = 0;
    EXPECT_EQ(read(pipe.read.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
    EXPECT_OK(far_.Read(absl::Seconds(10), &received));
    EXPECT_FALSE(received.valid());
    writer.join();
  }
}

TEST_F(MessagePipeTest, ADescriptorThatNobodyAsksForIsClosed) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  ASSERT_OK(near_.Write("x", absl::Seconds(10), pipe.write.get()));
  EXPECT_OK(far_.Read());
  pipe.write.Reset();
  char byte = 0;
  EXPECT_EQ(read(pipe.read.get(), &byte, 1), 0) << "no writer is left";
}

TEST_F(MessagePipeTest, AWildLengthIsRefused) {
  WriteRaw("\xff\xff\xff\xff");
  EXPECT_THAT(near_.Read(),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("4294967295 bytes is announced")));
}

TEST_F(MessagePipeTest, TooLongToSendIsRefusedAndThePipeStaysGood) {
  EXPECT_THAT(near_.Write(std::string(kMaxBytes + 1, 'x')),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("the limit is")));
  ASSERT_OK(near_.Write("short"));
  ASSERT_OK_AND_ASSIGN(std::string read, far_.Read());
  EXPECT_EQ(read, "short");
}

TEST_F(MessagePipeTest, WritingToAClosedPipeIsUnavailable) {
  far_.Close();
  EXPECT_THAT(near_.Write("x"), StatusIs(StatusCode::kUnavailable, HasSubstr("has closed")));
}

TEST_F(MessagePipeTest, AWriteNobodyReadsTimesOutAndBreaksThePipe) {
  EXPECT_THAT(near_.Write(std::string(kMaxBytes, 'x'), absl::Milliseconds(30)),
              StatusIs(StatusCode::kDeadlineExceeded, testing::_));
  EXPECT_THAT(near_.Write("y"), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("in part")));
}

}  // namespace
}  // namespace kiln
