#include "client/cli/session_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace kiln::client {

void SessionFlags::AddSchedulerAddress(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--scheduler",
          [this](const std::string& value) {
            session_.scheduler = value;
            scheduler_given_ = true;
          },
          "HOST:PORT of the scheduler to use")
      ->type_name("HOST:PORT");
}

void SessionFlags::AddScheduler(CLI::App& command) {
  AddSchedulerAddress(command);
  AddAccess(command);
  AddJson(command);
}

void SessionFlags::AddDbFile(CLI::App& command, const std::string& help) {
  command
      .add_option_function<std::string>(
          "--db",
          [this](const std::string& value) {
            session_.db = value;
            db_given_ = true;
          },
          help)
      ->type_name("FILE");
}

void SessionFlags::AddDatabase(CLI::App& command) {
  AddDbFile(command, "the database file [kiln.db]");
  AddJson(command);
}

void SessionFlags::AddPlace(CLI::App& command) {
  AddSchedulerAddress(command);
  AddDbFile(command, "without a scheduler: the database file of jobs and records [kiln.db]");
  AddAccess(command);
  AddJson(command);
}

void SessionFlags::AddAccess(CLI::App& command) {
  command
      .add_option("--keys", session_.keys_folder,
                  "the folder with your keys of the farm [KILN_KEYS]")
      ->type_name("FOLDER");
  command
      .add_option("--secret-file", session_.secret_file,
                  "the file with the secret of a farm on one machine [KILN_SECRET_FILE]")
      ->type_name("FILE");
}

void SessionFlags::AddJson(CLI::App& command) {
  command.add_flag("--json", session_.json, "print JSON, one value a line");
}

// A flag wins over the environment. In the environment the scheduler wins over the database.
void SessionFlags::ReadEnvironment() {
  if (!db_given_) ReadVariable("KILN_DB", session_.db);
  if (!db_given_ && !scheduler_given_) ReadVariable("KILN_SCHEDULER", session_.scheduler);
}

StatusOr<Session> SessionFlags::Complete() {
  ReadEnvironment();
  if (db_given_ && scheduler_given_) {
    return InvalidArgument(
        "--db and --scheduler exclude each other: a scheduler has its own "
        "database");
  }
  return session_;
}

void ReadVariable(const char* name, std::string& value) {
  const char* text = std::getenv(name);
  if (text != nullptr && *text != '\0') value = text;
}

}  // namespace kiln::client
