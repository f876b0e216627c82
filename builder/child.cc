#include "builder/child.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/time/time.h"
#include "base/log.h"
#include "base/process/freed_memory.h"
#include "base/process/message_child.h"
#include "base/process/process_guard.h"
#include "base/process/sandbox.h"
#include "base/process/stop_signals_of_children.h"
#include "base/process/subprocess.h"
#include "base/text/utf8.h"
#include "builder/build.h"
#include "builder/child.pb.h"
#include "builder/memory_limit.h"

namespace kiln::builder {
namespace {

// A child without a request for this long counts as idle.
constexpr absl::Duration kIdle = absl::Seconds(2);

wire::ChildDone Serve(const v1::BuildRequest& request) {
  wire::ChildDone done;
  const auto outcome = [&] {
    const MemoryLimit limit(static_cast<int64_t>(request.memory_limit_bytes()));
    return Build(request);
  }();
  if (outcome.ok()) {
    *done.mutable_reply() = outcome->reply;
    done.set_repeatable(outcome->repeatable);
  } else {
    done.set_status_code(static_cast<int>(outcome.status().code()));
    // The message may quote a part of a character of the DAG.
    done.set_status_message(ValidUtf8(Message(outcome.status())));
  }
  done.set_memory_bytes(OwnMemoryBytes());
  return done;
}

// Reads the next request. A child that has no work gives its free memory back.
StatusOr<std::string> NextRequest(MessagePipe& pipe) {
  auto bytes = pipe.Read(kIdle);
  if (bytes.status().code() != StatusCode::kDeadlineExceeded) return bytes;
  GiveBackFreedMemory();
  return pipe.Read();
}

// Serves requests until the daemon closes the pipe.
Status ServeAll(MessagePipe& pipe) {
  while (true) {
    const auto bytes = NextRequest(pipe);
    if (!bytes.ok()) return IsEndOfPipe(bytes.status()) ? OkStatus() : bytes.status();
    wire::ChildEvent event;
    event.set_began(true);
    KILN_RETURN_IF_ERROR(pipe.Write(event.SerializeAsString()));
    v1::BuildRequest request;
    if (!request.ParseFromString(*bytes)) return DataLoss("the daemon sent no BuildRequest");
    *event.mutable_done() = Serve(request);
    KILN_RETURN_IF_ERROR(pipe.Write(event.SerializeAsString()));
  }
}

}  // namespace

int BuilderChildMain(int argc, char** argv) {
  DieWithParent();
  LeaveStopSignalsToParent();
  SetOomScore(kOomScoreOfBuild);
  Sandbox sandbox;
  CLI::App app("The child process of kiln_builder.");
  AddSandboxOptions(app, sandbox);
  CLI11_PARSE(app, argc, argv);
  InitLog("builder-child");
  MessagePipe pipe = ServeParent();
  if (const Status entered = EnterSandbox(std::move(sandbox)); !entered.ok()) {
    LogError("cannot enter the sandbox: {}", Message(entered));
    return 1;
  }
  HideProcess();
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ReportOutOfMemory();
  const Status status = ServeAll(pipe);
  if (!status.ok()) LogError("{}", Message(status));
  // The child does not end through exit(), because it does not need the destructors of the
  // compiler's globals.
  _exit(status.ok() ? 0 : 1);
}

}  // namespace kiln::builder
