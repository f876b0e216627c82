#include "builder/once.h"

#include "base/file/file.h"
#include "base/file/message_file.h"
#include "builder/build.h"

namespace kiln::builder {

Status BuildOnce(const std::string& path, const std::string& output_path) {
  v1::BuildRequest request;
  KILN_RETURN_IF_ERROR(ReadMessageFile(path, request));
  KILN_ASSIGN_OR_RETURN(BuildOutcome outcome, Build(request));
  v1::BuildReply& reply = outcome.reply;
  const bool built = reply.error() == v1::NO_ERROR;
  if (built && !output_path.empty()) {
    KILN_RETURN_IF_ERROR(WriteFileAtomically(output_path, reply.artifact().binary()));
  }
  if (built) {
    fmt::print("# binary: {} bytes\n", reply.artifact().binary().size());
    reply.mutable_artifact()->clear_binary();
  }
  PrintMessage(reply);
  if (built || output_path.empty()) return OkStatus();
  return FailedPrecondition("{} was not written: the build failed", output_path);
}

}  // namespace kiln::builder
