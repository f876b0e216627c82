// The meanings of the names of a template's text, statement by statement, and the check whether a
// statement uses them correctly.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "search/templates/template_text.h"
#include "search/templates/vocabulary.h"

namespace kiln::search {

class Scope {
 public:
  // Checks the statement against those before it, and gives its names a meaning. InvalidArgument
  // has the position, the text that was found and the text that was expected there.
  Status Add(const Statement& statement);

 private:
  Status AddStage(const Statement& statement);
  Status AddLet(const Statement& statement);
  Status AddKnob(const Statement& statement);
  Status AddStep(const Statement& statement);

  Status CheckSplitKnob(const Statement& statement) const;
  Status CheckReorderKnob(const Statement& statement) const;
  Status CheckAnnotateKnob(const Statement& statement) const;
  Status CheckOptionKnob(const Statement& statement) const;

  // Checks that the call has these parameters.
  Status CheckCall(const Statement& statement, std::string_view parameters) const;
  Status CheckArgument(const Expression& arg, std::string_view parameter) const;
  Status CheckLoop(const Expression& arg) const;
  // Checks a number. `knobs` tells whether it may depend on knobs, `sizes` whether it may contain
  // size[i].
  Status CheckNumber(const Expression& e, bool knobs, bool sizes = false) const;
  bool DependsOnKnobs(const Expression& e) const;
  const Meaning* Find(const std::string& name) const;
  // Gives the name a meaning. A name with a meaning may only become a loop or stage again.
  Status Define(const Statement& statement, const std::string& name, Meaning meaning);

  std::map<std::string, Meaning> names_;
  bool has_steps_ = false;
};

}  // namespace kiln::search
