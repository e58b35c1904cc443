// Questions about the nodes of a program, for reports: no vocabulary, no masks.
//
// A question is a conjunction of clauses; a clause is a disjunction of literals; a literal is a
// node number n ("the value satisfies node n") or ~n ("it does not").
//
// "No" is proved.  "Yes" is the answer of a search whose step budgets were not spent; where they
// were, there is no answer.  Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "constrain/json_machine.hpp"
#include "constrain/lexical_pool.hpp"
#include "constrain/program.hpp"

namespace constrain {

using Clauses = std::vector<std::vector<int32_t>>;

class Analyzer {
 public:
  // What is kept between questions is dropped when it holds more than `max_memory` bytes.
  Analyzer(std::shared_ptr<const Program> program, size_t max_memory);

  // Whether some value satisfies all clauses; nothing if the budget was spent.  Of a program of
  // kind "text": whether some text does.
  std::optional<bool> satisfiable(const Clauses& clauses);
  // Whether the strings that satisfy all clauses are finitely many (also: none); nothing if the
  // search grew too large.
  std::optional<bool> strings_are_finite(const Clauses& clauses);
  // A short JSON text of a value that satisfies all clauses; nothing if none was found.
  std::optional<std::string> example(const Clauses& clauses, size_t limit);
  size_t bytes() const;

 private:
  Formula formula(const Clauses& clauses);
  void make();
  template <class Fn>
  auto ask(Fn fn) -> decltype(fn());

  std::shared_ptr<const Program> program_;
  bool text_;
  size_t max_memory_;
  size_t questions_ = 0;
  std::unique_ptr<LexicalPool> pool_;
  std::unique_ptr<JsonMachine> machine_;
};

}  // namespace constrain
