// The test runs itself as the child: main() at the bottom dispatches on the first argument.
#include "base/process/message_child.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using End = MessageChild::End;
using Taken = MessageChild::Taken;

constexpr absl::Duration kLong = absl::Seconds(60);

StatusOr<MessageChild> StartChild(const std::vector<int>& inherited_fds = {}) {
  return MessageChild::Start({*CurrentExecutable(), "--child"}, inherited_fds);
}

bool Never() { return false; }
bool Always() { return true; }

// Messages that a child sent: "soon: ...", "garbage", or an answer.
struct Asked {
  End end;
  std::vector<std::string> messages;
};
Asked Ask(MessageChild& child, const std::string& request,
          const MessageChild::Call& call = {.limit = kLong, .cancelled = Never},
          absl::Duration limit_from_soon = kLong) {
  Asked asked;
  asked.end = child.Ask(request, call, [&](const std::string& message) -> Taken {
    asked.messages.push_back(message);
    if (message == "garbage") return {Taken::kGarbled};
    if (message == "soon") return {Taken::kGoesOn, limit_from_soon};
    return {Taken::kAnswered};
  });
  return asked;
}

TEST(MessageChildTest, AnswersOneRequestAfterAnother) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  for (const std::string request : {"one", "two", ""}) {
    const Asked asked = Ask(child, "echo" + request);
    EXPECT_EQ(asked.end, End::kAnswered);
    EXPECT_THAT(asked.messages, testing::ElementsAre("soon", "echo" + request));
  }
  EXPECT_TRUE(child.Running());
}

TEST(MessageChildTest, TellsTheLastWordsOfOneThatDies) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  EXPECT_EQ(Ask(child, "abort").end, End::kEnded);
  EXPECT_EQ(child.DescribeEnd("while aborting"),
            "killed by signal 6 (Aborted) while aborting: a b c");
  EXPECT_FALSE(child.Running());
}

TEST(MessageChildTest, WordsOfAnAnsweredRequestAreForgotten) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  EXPECT_EQ(Ask(child, "chat").end, End::kAnswered);
  EXPECT_EQ(Ask(child, "exit").end, End::kEnded);
  EXPECT_EQ(child.DescribeEnd(), "exit status 3");
}

TEST(MessageChildTest, ChildrenKnowLittleOfOurEnvironment) {
  setenv("FARM_PASSWORD", "secret", 1);
  setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  const Asked asked = Ask(child, "environment");
  unsetenv("FARM_PASSWORD");
  unsetenv("CUDA_VISIBLE_DEVICES");
  ASSERT_EQ(asked.end, End::kAnswered);
  EXPECT_THAT(asked.messages.back(), testing::HasSubstr("PATH "));
  EXPECT_THAT(asked.messages.back(), testing::HasSubstr("CUDA_VISIBLE_DEVICES "));
  EXPECT_THAT(asked.messages.back(), testing::Not(testing::HasSubstr("FARM_PASSWORD")));
}

TEST(MessageChildTest, OneThatIsGoneBeforeTheRequestHasEnded) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, MessageChild::Start({"false"}));
  for (int i = 0; i < 1000 && child.Running(); ++i) {
    Clock::Real().SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(Ask(child, "echo").end, End::kEnded);
  EXPECT_EQ(child.DescribeEnd(), "exit status 1");
}

TEST(MessageChildTest, GarbageKills) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  EXPECT_EQ(Ask(child, "garble").end, End::kGarbled);
  EXPECT_TRUE(child.DescribeEnd().starts_with("killed by signal 9"));
}

TEST(MessageChildTest, TheLimitOfTheCallKills) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  const Asked asked =
      Ask(child, "hang at once", {.limit = absl::Milliseconds(100), .cancelled = Never});
  EXPECT_EQ(asked.end, End::kTimedOut);
  EXPECT_TRUE(child.DescribeEnd().starts_with("killed by signal 9"));
}

TEST(MessageChildTest, AMessageSetsAnotherLimit) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  const Asked asked =
      Ask(child, "hang", {.limit = kLong, .cancelled = Never}, absl::Milliseconds(100));
  EXPECT_EQ(asked.end, End::kTimedOut);
  EXPECT_THAT(asked.messages, testing::ElementsAre("soon"));
}

TEST(MessageChildTest, ACancelledOneIsKilled) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  EXPECT_EQ(Ask(child, "hang", {.limit = kLong, .cancelled = Always}).end, End::kCancelled);
  EXPECT_TRUE(child.DescribeEnd().starts_with("killed by signal 9"));
}

TEST(MessageChildTest, ACancelledOneMayAnswerWithinTheGrace) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  EXPECT_EQ(Ask(child, "answer late", {kLong, kLong, Always}).end, End::kAnswered);
  EXPECT_EQ(Ask(child, "hang", {kLong, absl::Milliseconds(100), Always}).end, End::kCancelled);
}

TEST(MessageChildTest, HandsDescriptorsOn) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild({pipe.write.get()}));
  EXPECT_EQ(Ask(child, "write to 5").end, End::kAnswered);
  char byte = 0;
  ASSERT_EQ(read(pipe.read.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '5');
}

TEST(MessageChildTest, OneThatStandsStillIsFoundAndGone) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  const double start_s = Clock::Real().MonotonicSeconds();
  EXPECT_EQ(Ask(child, "stop").end, End::kStopped);
  EXPECT_LT(Clock::Real().MonotonicSeconds() - start_s, 10);
  EXPECT_THAT(child.DescribeEnd(), testing::HasSubstr("killed by signal 9"));
}

TEST(MessageChildTest, OneWhoseOwnChildStandsStillToo) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  EXPECT_EQ(Ask(child, "stop below").end, End::kStopped);
}

TEST(MessageChildTest, StandingStillAtTheLimitIsNoTimeOut) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  const MessageChild::Call call = {.limit = absl::Seconds(5), .cancelled = Never};
  EXPECT_EQ(Ask(child, "stop", call, absl::Milliseconds(200)).end, End::kStopped);
}

TEST(MessageChildTest, OneThatGoesOnSoonIsLetGoOn) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, StartChild());
  std::thread waker([&] {
    Clock::Real().SleepFor(absl::Milliseconds(1500));
    kill(child.pid(), SIGCONT);
  });
  EXPECT_EQ(Ask(child, "stop").end, End::kAnswered);
  waker.join();
}

TEST(MessageChildTest, VariablesReplaceOurs) {
  ASSERT_OK_AND_ASSIGN(MessageChild child, MessageChild::Start({*CurrentExecutable(), "--child"},
                                                               {}, {"TMPDIR=/elsewhere"}));
  EXPECT_THAT(Ask(child, "TMPDIR").messages, testing::ElementsAre("soon", "/elsewhere"));
}

// Serves one request in the child.
void Serve(MessagePipe& pipe, const std::string& request) {
  const auto send = [&](const std::string& message) { KILN_CHECK(pipe.Write(message).ok()); };
  const auto hang = [] {
    while (true) pause();
  };
  if (request == "hang at once") hang();
  send("soon");
  if (request == "hang") hang();
  if (request == "abort") {
    dprintf(STDOUT_FILENO, "\n a\nb");
    dprintf(STDERR_FILENO, "\tc\x7f\n");
    abort();
  }
  if (request == "exit") _exit(3);
  if (request == "garble") {
    send("garbage");
    hang();
  }
  if (request == "chat") dprintf(STDOUT_FILENO, "chat\n");
  if (request == "answer late") Clock::Real().SleepFor(absl::Milliseconds(300));
  if (request == "environment") {
    std::string names;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string text = *variable;
      names += text.substr(0, text.find('=')) + " ";
    }
    return send(names);
  }
  if (request == "stop") raise(SIGSTOP);
  if (request == "stop below") {
    if (fork() == 0) raise(SIGSTOP);
    hang();
  }
  if (request == "TMPDIR") return send(std::getenv("TMPDIR"));
  if (request == "write to 5") KILN_CHECK(write(5, "5", 1) == 1);
  send(request);
}

}  // namespace

int RunChild() {
  DieWithParent();
  MessagePipe pipe = ServeParent();
  while (true) {
    const auto request = pipe.Read();
    if (!request.ok()) return 0;
    Serve(pipe, *request);
  }
}

}  // namespace kiln

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--child") _exit(kiln::RunChild());
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
