#include "client/cli/subject_flags.h"

#include <CLI/CLI.hpp>

#include "client/cli/session_flags.h"
#include "client/cli/workload_flags.h"

namespace kiln::client {

void AddSubject(CLI::App& command, SessionFlags& session, SubjectFlags& subject,
                const std::string& target) {
  command.add_option("what", subject.what,
                     "a job, a trial (JOB/N), a workload key, the number of a record, an operator "
                     "(with --args), or a text file; nothing: the newest job");
  command.add_option("--op", subject.arguments.op, "an operator or text file");
  AddWorkloadArguments(command, subject.arguments);
  command.add_option("--target", subject.target, target);
  command.add_option("--task", subject.task, "only this task of a job");
  session.AddPlace(command);
}

void AddDeployment(CLI::App& command, SubjectFlags& subject) {
  command
      .add_option("--as-deployed", subject.as_deployed,
                  "only records that were measured as a program is deployed: within a CUDA graph, "
                  "or by single launches on a stream")
      ->check(CLI::IsMember({"graph", "stream"}))
      ->type_name("graph|stream");
}

void AddKernelSpace(CLI::App& command, SubjectFlags& subject) {
  command
      .add_option("--space", subject.kernel_space,
                  "with a kernel of yours (*.cu, *.c): its parameters and launch, as kiln tune "
                  "takes them")
      ->type_name("FILE.toml");
}

void AddRecord(CLI::App& command, SubjectFlags& subject) {
  command.add_option("--record", subject.record, "this record, by its number")
      ->check(CLI::PositiveNumber);
}

}  // namespace kiln::client
