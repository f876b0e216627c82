// kiln states answers questions about schedules that another program asks on stdin.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>

#include "client/cli/states/answers.h"
#include "client/cli/states/commands.h"

namespace kiln::client {
namespace {

// Reads questions until stdin ends.
Status AnswerAll() {
  StateAnswers answers;
  for (std::string question; std::getline(std::cin, question);) {
    const std::string answer = answers.Answer(question) + "\n";
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    if (std::fflush(stdout) != 0) return Unavailable("nobody reads the answers");
  }
  return OkStatus();
}

}  // namespace

Run AddStates(CLI::App& states, SessionFlags&) {
  states.description(
      "for programs: answers to questions about schedules, a JSON object a line in and out");
  return Plain([](const Session&) { return AnswerAll(); });
}

}  // namespace kiln::client
