#include "client/session.h"

#include "base/text/shell_word.h"
#include "client/client.h"
#include "client/local_archive.h"
#include "client/local_models.h"
#include "client/remote_models.h"

namespace kiln::client {

std::string Session::Command(const std::string& words) const {
  std::string command = ShellWord(program) + " " + words;
  if (!scheduler.empty()) {
    command += " --scheduler " + ShellWord(scheduler);
    if (!keys_folder.empty()) return command + " --keys " + ShellWord(keys_folder);
    return secret_file.empty() ? command : command + " --secret-file " + ShellWord(secret_file);
  }
  return db == "kiln.db" ? command : command + " --db " + ShellWord(db);
}

StatusOr<FarmAccess> Session::Access() const { return FarmAccess::Open(keys_folder, secret_file); }

StatusOr<std::unique_ptr<SchedulerClient>> Session::Connect() const {
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, Access());
  return SchedulerClient::Connect(scheduler, access);
}

StatusOr<std::unique_ptr<Archive>> Session::OpenArchive(bool write) const {
  if (scheduler.empty()) return OpenLocalArchive(db, write);
  return Connect();
}

StatusOr<std::unique_ptr<Models>> Session::OpenModels(bool write) const {
  if (scheduler.empty()) return OpenLocalModels(db, write);
  KILN_ASSIGN_OR_RETURN(const auto client, Connect());
  return ModelsOf(*client);
}

}  // namespace kiln::client
