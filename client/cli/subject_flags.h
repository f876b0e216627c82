// The subject of a command: a record, a job or a workload, as its flags name it. resolve.h resolves
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/jobs/workload_source.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

class SessionFlags;

struct SubjectFlags {
  // A workload key, job, record, operator or text file; "": the newest job.
  std::string what;
  // --op, --args, ...
  WorkloadArguments arguments;
  // "": any target.
  std::string target;
  // Task of a job; none: any.
  std::optional<int> task;
  int64_t record = 0;
  // Only records of this deployment (device/measured_as.h); "": any.
  std::string as_deployed;
  // Space of a kernel (kernel_source.h), whose source is `what`.
  std::string kernel_space;
};

// Adds the subject and where it is. `target` is the help of --target.
void AddSubject(CLI::App& command, SessionFlags& session, SubjectFlags& subject,
                const std::string& target = "only targets that begin with this text");
// Adds the number of a record.
void AddRecord(CLI::App& command, SubjectFlags& subject);
// Adds --as-deployed.
void AddDeployment(CLI::App& command, SubjectFlags& subject);
// Adds the file that describes the space of the subject's kernel.
void AddKernelSpace(CLI::App& command, SubjectFlags& subject);

}  // namespace kiln::client
