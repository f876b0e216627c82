#include "client/cli/workload_flags.h"

#include <CLI/CLI.hpp>

namespace kiln::client {

void AddWorkloadArguments(CLI::App& command, WorkloadArguments& arguments) {
  command
      .add_option("--args", arguments.args, "its arguments, for instance 512,512,512; see kiln ops")
      ->type_name("N,N,...");
  command.add_option("--dtype", arguments.dtype, "type of the inputs")->capture_default_str();
  command.add_option("--out-dtype", arguments.out_dtype, "type of sums and results [as --dtype]");
  command.add_option("--epilogue", arguments.epilogue, "what follows it, for instance bias,relu");
  AddLayout(command, arguments.layout);
  AddLets(command, arguments.lets);
}

void AddLets(CLI::App& command, std::vector<std::string>& lets) {
  command
      .add_option("--let", lets,
                  "the value of a param of a text file, for instance N=512; any number of them")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
}

void AddLayout(CLI::App& command, std::string& layout) {
  command
      .add_option("--layout", layout,
                  "of network:NAME: NHWC or NCHW [NHWC]; of conv2d and other operators that have "
                  "several: which one")
      ->transform(CLI::IsMember({"nhwc", "nchw", "nwc", "ncw", "ndhwc", "ncdhw"}, CLI::ignore_case))
      ->type_name("LAYOUT");
}

void AddMath(CLI::App& command, std::string& target) {
  const auto set = [&target](const std::string& math) {
    if (math == "full") return;
    if (target.empty()) target = "cuda";
    target += " -math=" + math;
  };
  command
      .add_option_function<std::string>(
          "--math", set,
          "of cuda: tf32 lets matrix units compute sums of products of float32, of which each "
          "factor is rounded to 10 bits [full]")
      ->check(CLI::IsMember({"full", "tf32"}))
      ->type_name("MATH");
}

}  // namespace kiln::client
