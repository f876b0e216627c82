#include "client/session.h"

#include "client/client.h"
#include "client/local_archive.h"
#include "client/wording.h"

namespace kiln::client {

std::string Session::Command(const std::string& words) const {
  std::string command = ShellWord(program) + " " + words;
  if (!scheduler.empty()) return command + " --scheduler " + ShellWord(scheduler);
  return db == "kiln.db" ? command : command + " --db " + ShellWord(db);
}

StatusOr<std::unique_ptr<Archive>> Session::OpenArchive(bool write) const {
  if (scheduler.empty()) return OpenLocalArchive(db, write);
  return SchedulerClient::Connect(scheduler);
}

}  // namespace kiln::client
