// Which quotients and remainders of index arithmetic get a name. Internal to this folder.
//
// Division is slow, and its text is long. A quotient that is used in a deeper loop than the one of
// its innermost variable, or twice, is computed once, where that variable is bound:
//
//   const int i_div_7 = i / 7;
//
// A kernel is emitted twice: the first time the quotients are noted, the second time those that are
// worth it have names.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

// One thread. Expressions are of the kernel's CudaScope, and live as long.
class QuotientNames {
 public:
  struct Name {
    std::string text;
    bool is_long = false;  // long long, not int
  };

  // The second time begins.
  void StartNaming() { is_noting_ = false; }

  // A variable is bound from here to Leave: by a loop that runs, or by the number of a thread or
  // block.
  void Enter(int32_t var, bool is_loop);
  void Leave(bool is_loop);

  // The quotient is used here. Nothing is noted the second time, nor of what has a load in it or no
  // variable.
  void Note(ir::Expr quotient);

  // Those to be named where the variable is bound, in the order of their first use; none the first
  // time.
  std::vector<ir::Expr> ToName(int32_t var) const;
  void SetName(ir::Expr quotient, Name name) { uses_[quotient].name = std::move(name); }
  const Name* NameOrNull(ir::Expr e) const;

 private:
  struct Uses {
    int32_t var = -1;       // the innermost variable in it
    bool is_worth = false;  // used in a deeper loop, or twice
    Name name;              // empty: none yet
  };
  struct Depth {
    int all = 0;    // variables bound around it, and itself
    int loops = 0;  // those of them that loops bind
  };

  bool is_noting_ = true;
  Depth depth_;
  std::unordered_map<int32_t, Depth> depth_of_var_;
  std::unordered_map<ir::Expr, Uses> uses_;
  std::vector<ir::Expr> order_;  // of the first use
};

}  // namespace kiln::codegen
