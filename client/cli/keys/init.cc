// kiln keys init makes the authority of a farm.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/process/user_name.h"
#include "base/server/net.h"
#include "base/text/shell_word.h"
#include "client/cli/keys/commands.h"
#include "client/cli/keys/keys_text.h"
#include "client/cli/session_flags.h"
#include "client/farm/farm_keys.h"
#include "client/farm/farm_state.h"
#include "client/session.h"

namespace kiln::client {
namespace {

struct InitFlags {
  std::string authority = kDefaultAuthority;
};

// Prints the commands that lead from here to a secured farm of two boxes. With `init` itself they
// are six.
void PrintNextSteps(const std::string& folder, const std::string& program) {
  const std::string named =
      folder == kDefaultAuthority ? "" : fmt::format(" --authority {}", ShellWord(folder));
  const std::string box2 = ShellWord(JoinPath(folder, "box2"));
  const std::string user = ShellWord(JoinPath(folder, MemberOfUser(UserName())));
  const std::string host = HostName();
  fmt::print(
      "\n"
      "From here to a farm of two boxes, this one and box2, and its first job:\n"
      "  {} farm up --tls --authority {} --listen 0.0.0.0\n"
      "  {} keys issue box2 --role work{}\n"
      "  scp -rp {} box2:\n"
      "  box2$ {} runner --keys box2 --listen 0.0.0.0:0 --tracker {}:{}\n"
      "  {} tune matmul --args 512,512,512 --scheduler {}:{} --keys {}\n"
      "\n"
      "{} keys issue NAME --role submit makes the keys of another person.\n",
      program, ShellWord(folder), program, named, box2, program, host, kTrackerPort, program, host,
      kSchedulerPort, user, program);
}

Status InitKeys(const InitFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const AuthorityFolder folder, AuthorityFolder::Init(flags.authority, {}));
  const Certificate& own = folder.authority().certificate();
  if (session.json) {
    fmt::print("{{\"authority\":\"{}\",\"ends_s\":{}}}\n", own.CommonName(),
               absl::ToUnixSeconds(own.ends()));
    return OkStatus();
  }
  fmt::print(
      "The authority '{}' is in the folder {}.\n"
      "Who reads {}/authority/key.pem enters the farm in any name:\n"
      "keep the folder on one machine, with a copy in a safe place.\n",
      own.CommonName(), ShellWord(flags.authority), ShellWord(flags.authority));
  PrintNextSteps(flags.authority, session.program);
  return OkStatus();
}

}  // namespace

Run AddKeysInit(CLI::App& init, SessionFlags& session) {
  const auto flags = std::make_shared<InitFlags>();
  init.description("make the authority of a farm, and print what comes next");
  AddAuthority(init, flags->authority);
  session.AddJson(init);
  return Plain([flags](const Session& session) { return InitKeys(*flags, session); });
}

}  // namespace kiln::client
