// Flags of a computation, for the commands that take an operator or a text file.
#pragma once

#include <string>
#include <vector>

#include "client/jobs/workload_source.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

// Adds the arguments of an operator except for its name.
void AddWorkloadArguments(CLI::App& command, WorkloadArguments& arguments);

// Adds the values of the params of a text file.
void AddLets(CLI::App& command, std::vector<std::string>& lets);

// Adds the layout of an operator: "nhwc", in small letters.
void AddLayout(CLI::App& command, std::string& layout);

// Adds how sums of products of float32 may be computed. The option becomes a part of `target`,
// which must be added before.
void AddMath(CLI::App& command, std::string& target);

}  // namespace kiln::client
