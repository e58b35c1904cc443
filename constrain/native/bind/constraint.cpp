// Programs, constraints and matchers.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "bindings.hpp"
#include "constrain/batch.hpp"
#include "constrain/lexical_pool.hpp"
#include "constrain/program.hpp"
#if __has_include("constrain/machines.hpp")
#include "constrain/machines.hpp"
#define CONSTRAIN_MACHINES 1
#endif

namespace constrain::bind {
namespace {

using SharedProgram = std::shared_ptr<const Program>;
void make_program(BoundProgram* self, std::string_view kind, nb::handle nodes, nb::handle args,
                  nb::handle refs, nb::handle values, nb::handle regexes, nb::handle strings,
                  int32_t root, std::string_view whitespace, std::string_view numbers,
                  std::string_view property_order, nb::handle parts, std::string_view escapes) {
  auto program = std::make_shared<Program>();
  if (kind != "json" && kind != "text" && kind != "grammar") {
    throw nb::value_error("kind must be json, text or grammar");
  }
  program->text = kind == "text";
  program->grammar = kind == "grammar";
  program->nodes = int32_values(nodes);
  program->args = int32_values(args);
  program->refs = int32_values(refs);
  program->values = int32_values(values);
  for (nb::handle regex : nb::iter(regexes)) program->regexes.push_back(int32_values(regex));
  for (nb::handle string : nb::iter(strings)) {
    if (!PyBytes_Check(string.ptr())) throw nb::type_error("strings of a program are bytes");
    program->strings.emplace_back(PyBytes_AS_STRING(string.ptr()),
                                  static_cast<size_t>(PyBytes_GET_SIZE(string.ptr())));
  }
  program->root = root;
  if (whitespace == "bounded") {
    program->whitespace = Whitespace::kBounded;
  } else if (whitespace == "any") {
    program->whitespace = Whitespace::kAny;
  } else if (whitespace == "compact") {
    program->whitespace = Whitespace::kCompact;
  } else if (whitespace == "spaced") {
    program->whitespace = Whitespace::kSpaced;
  } else {
    throw nb::value_error("whitespace must be bounded, any, compact or spaced");
  }
  if (numbers != "plain" && numbers != "any") throw nb::value_error("numbers must be plain or any");
  program->plain_numbers = numbers == "plain";
  if (property_order != "any" && property_order != "declared") {
    throw nb::value_error("property_order must be any or declared");
  }
  program->declared_order = property_order == "declared";
  if (escapes != "any" && escapes != "plain") throw nb::value_error("escapes must be any or plain");
  program->plain_escapes = escapes == "plain";
  for (nb::handle part : nb::iter(parts)) {
    const SharedProgram& core = nb::cast<const BoundProgram&>(part).core;
    if (!program->grammar || core->grammar || core->text) {
      throw nb::value_error("only grammars have parts, and these are of kind json");
    }
    program->parts.push_back(core);
  }
  new (self) BoundProgram{std::move(program)};
}

MachineFactory machine_factory(SharedProgram program) {
#ifdef CONSTRAIN_MACHINES
  return [program = std::move(program)](LexicalStepper& pool) {
    return make_machine(program, static_cast<LexicalPool&>(pool));
  };
#else
  return [program = std::move(program)](LexicalStepper&) -> std::unique_ptr<Machine> {
    throw UnsupportedFeature("this build has no machines");
  };
#endif
}

void make_constraint(BoundConstraint* self, const BoundVocabulary& vocabulary,
                     const BoundProgram& program, size_t max_memory, double seconds) {
  std::shared_ptr<Vocabulary> words = vocabulary.core;
  MachineFactory factory = machine_factory(program.core);
  nb::gil_scoped_release release;
  const DeadlineScope deadline(seconds);
  auto core = std::make_shared<Constraint>(std::move(words), std::move(factory), max_memory);
  new (self) BoundConstraint{std::move(core)};
}

std::vector<int64_t> token_ids(nb::handle tokens) {
  nb::object items = nb::steal(PySequence_Fast(tokens.ptr(), "tokens must be a sequence of ints"));
  if (!items.is_valid()) throw nb::python_error();
  const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(items.ptr()));
  PyObject** entries = PySequence_Fast_ITEMS(items.ptr());
  std::vector<int64_t> ids(count);
  for (size_t i = 0; i < count; ++i) {
    nb::object number = nb::steal(PyNumber_Index(entries[i]));
    if (!number.is_valid()) throw nb::python_error();
    int overflow = 0;
    ids[i] = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0) ids[i] = -1;   // no token has such an id
  }
  return ids;
}

uint32_t* checked_row(const Rows& rows, int64_t row, size_t words) {
  if (row < 0 || static_cast<size_t>(row) >= rows.count) {
    throw nb::index_error(("row " + std::to_string(row) + " of a bitmask with " +
                           std::to_string(rows.count) + " rows")
                              .c_str());
  }
  if (rows.words != words) {
    throw nb::value_error(("the bitmask has " + std::to_string(rows.words) +
                           " words per row, the vocabulary needs " + std::to_string(words))
                              .c_str());
  }
  return rows.row(static_cast<size_t>(row));
}

[[noreturn]] void reject(Matcher& matcher, int64_t token) {
  std::string_view text = matcher.constraint().vocabulary().text(token);
  throw TokenRejected(token, text, matcher.describe());
}

void advance(Matcher& self, int64_t token) {
  const MatcherGuard guard(self);
  if (!self.advance(token)) reject(self, token);
}

bool try_advance(Matcher& self, int64_t token) {
  const MatcherGuard guard(self);
  return self.advance(token);
}

void rollback(Matcher& self, int64_t n) {
  const MatcherGuard guard(self);
  if (n < 0 || !self.rollback(static_cast<size_t>(n))) {
    throw Error("cannot roll back " + std::to_string(n) + " tokens of " +
                std::to_string(self.tokens().size()));
  }
}

// Tokens that remain: None or a number from 0 on.
uint32_t token_budget(nb::handle remaining) {
  if (remaining.is_none()) return Matcher::kNoBudget;
  if (PyBool_Check(remaining.ptr())) throw nb::type_error("remaining is a bool, expected an int");
  nb::object number = nb::steal(PyNumber_Index(remaining.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow < 0 || (overflow == 0 && value < 0)) {
    throw Error("remaining is negative, expected a number of tokens");
  }
  constexpr int64_t kMost = Matcher::kNoBudget - 1;
  return static_cast<uint32_t>(overflow > 0 ? kMost : std::min(value, kMost));
}

// A mask that has failed: nothing can follow, or nothing within the budget.
bool over_budget(Matcher& matcher, uint32_t remaining) {
  return remaining != Matcher::kNoBudget && !matcher.is_finished() &&
         matcher.tokens_needed() > remaining;
}

void fill_bitmask(Matcher& self, nb::handle bitmask, int64_t row, nb::handle remaining) {
  uint32_t* words =
      checked_row(writable_rows(bitmask), row, self.constraint().vocabulary().words());
  const uint32_t budget = token_budget(remaining);
  const MatcherGuard guard(self);
  if (self.fill(words, budget)) return;
  if (over_budget(self, budget)) throw BudgetExceeded({row}, budget, self.tokens_needed());
  throw NothingAllowed({row});
}

void fill_bitmasks(nb::handle matchers, nb::handle bitmask, int64_t first_row,
                   nb::handle remaining, size_t threads) {
  // A tuple: another thread may change a list while the GIL is released.
  nb::object items = nb::steal(PySequence_Tuple(matchers.ptr()));
  if (!items.is_valid()) {
    PyErr_Clear();
    throw nb::type_error("matchers must be a sequence of Matcher or None");
  }
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(items.ptr()));
  const Rows rows = writable_rows(bitmask);
  std::vector<uint32_t> budgets(count, Matcher::kNoBudget);
  if (!remaining.is_none()) {
    nb::object numbers = nb::steal(PySequence_Tuple(remaining.ptr()));
    if (!numbers.is_valid()) {
      PyErr_Clear();
      throw nb::type_error("remaining must be a sequence of ints or None");
    }
    if (static_cast<size_t>(PyTuple_GET_SIZE(numbers.ptr())) != count) {
      throw nb::value_error("remaining must have one entry for each matcher");
    }
    for (size_t i = 0; i < count; ++i) {
      budgets[i] = token_budget(PyTuple_GET_ITEM(numbers.ptr(), static_cast<Py_ssize_t>(i)));
    }
  }
  std::vector<BatchJob> jobs;
  std::vector<int64_t> job_rows;
  std::vector<uint32_t*> open;   // rows without a matcher
  jobs.reserve(count);
  job_rows.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = first_row + static_cast<int64_t>(i);
    PyObject* const entry = PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i));
    if (entry == Py_None) {
      open.push_back(checked_row(rows, row, rows.words));
      continue;
    }
    BatchJob job;
    if (!nb::try_cast(nb::handle(entry), job.matcher, false) || !job.matcher) {
      throw nb::type_error("matchers must be a sequence of Matcher or None");
    }
    job.row = checked_row(rows, row, job.matcher->constraint().vocabulary().words());
    job.remaining = budgets[i];
    jobs.push_back(job);
    job_rows.push_back(row);
  }
  {
    nb::gil_scoped_release release;
    for (uint32_t* row : open) std::fill_n(row, rows.words, ~0u);
    fill_batch(jobs, threads);
  }
  std::vector<int64_t> dead, over;
  uint32_t needed = 0, given = 0;   // of the row that needs most
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].result == BatchJob::Result::kNothing) dead.push_back(job_rows[i]);
    if (jobs[i].result != BatchJob::Result::kOverBudget) continue;
    over.push_back(job_rows[i]);
    if (jobs[i].needed < needed) continue;
    needed = jobs[i].needed;
    given = jobs[i].remaining;
  }
  if (!dead.empty()) throw NothingAllowed(std::move(dead));
  if (!over.empty()) throw BudgetExceeded(std::move(over), given, needed);
}

nb::list token_list(const Matcher& self) {
  nb::list result;
  for (const uint32_t token : self.tokens()) result.append(token);
  return result;
}

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

}  // namespace

void bind_constraint(nb::module_& m) {
  nb::class_<BoundProgram>(m, "Program")
      .def("__init__", &make_program, nb::arg("kind"), nb::arg("nodes"), nb::arg("args"),
           nb::arg("refs"), nb::arg("values"), nb::arg("regexes"), nb::arg("strings"),
           nb::arg("root"), nb::arg("whitespace"), nb::arg("numbers"), nb::arg("property_order"),
           nb::arg("parts") = nb::tuple(), nb::arg("escapes") = "any");

  nb::class_<BoundConstraint>(m, "Constraint", nb::is_weak_referenceable())
      .def("__init__", &make_constraint, nb::arg("vocabulary"), nb::arg("program"),
           nb::arg("max_memory"), nb::arg("max_seconds") = std::numeric_limits<double>::infinity())
      .def_prop_ro("memory",
                   [](const BoundConstraint& c) {
                     nb::gil_scoped_release release;
                     return c.core->bytes();
                   },
                   "Bytes of states, machine and kept masks that are held now.")
      .def_prop_ro("generation", [](const BoundConstraint& c) {
        const Guard guard(c.core->first().mutex());
        return c.core->first().generation();
      });

  nb::class_<Matcher>(m, "Matcher", nb::is_weak_referenceable())
      .def("__init__",
           [](Matcher* self, const BoundConstraint& c) {
             new (self) Matcher(c.core);
           },
           nb::arg("constraint"))
      .def("__init__",
           [](Matcher* self, const Matcher& other) {
             const MatcherGuard guard(other);
             new (self) Matcher(other);
           },
           nb::arg("other"))
      .def("advance", &advance, nb::arg("token_id"))
      .def("try_advance", &try_advance, nb::arg("token_id"))
      .def("rollback", &rollback, nb::arg("n"))
      .def("reset",
           [](Matcher& self) {
             const MatcherGuard guard(self);
             self.reset();
           })
      .def("validate",
           [](Matcher& self, nb::handle tokens, nb::handle remaining) {
             const std::vector<int64_t> ids = token_ids(tokens);
             const uint32_t budget = token_budget(remaining);
             const MatcherGuard guard(self);
             return self.validate(ids, budget);
           },
           nb::arg("tokens"), nb::kw_only(), nb::arg("remaining") = nb::none())
      .def("fill_bitmask", &fill_bitmask, nb::arg("bitmask"), nb::arg("row") = 0, nb::kw_only(),
           nb::arg("remaining") = nb::none())
      .def("shortest_completion",
           [](Matcher& self) -> nb::object {
             std::vector<uint32_t> tokens;
             const MatcherGuard guard(self);
             if (!self.shortest_completion(tokens)) return nb::none();
             nb::list result;
             for (const uint32_t token : tokens) result.append(token);
             return result;
           })
      .def_prop_ro("tokens_needed",
                   [](Matcher& self) -> nb::object {
                     const MatcherGuard guard(self);
                     const uint32_t count = self.tokens_needed();
                     if (count == Budget::kNever) return nb::none();
                     return nb::int_(count);
                   })
      .def_prop_ro("is_accepting",
                   [](Matcher& self) {
                     const MatcherGuard guard(self);
                     return self.is_accepting();
                   })
      .def_prop_ro("is_finished",
                   [](Matcher& self) {
                     const MatcherGuard guard(self);
                     return self.is_finished();
                   })
      .def_prop_ro("tokens",
                   [](Matcher& self) {
                     const MatcherGuard guard(self);
                     return token_list(self);
                   })
      .def_prop_ro("state_id",
                   [](Matcher& self) {
                     const MatcherGuard guard(self);
                     return self.state();
                   },
                   "Equal for equal states of one constraint, until states are dropped.")
      .def("expected",
           [](Matcher& self) {
             const MatcherGuard guard(self);
             return self.describe();
           })
      .def("completion",
           [](Matcher& self, size_t limit) -> nb::object {
             std::string text;
             const MatcherGuard guard(self);
             if (!self.complete(text, limit)) return nb::none();
             return to_bytes(text);
           },
           nb::arg("limit"))
      .def("forced_bytes",
           [](Matcher& self, size_t limit) {
             const MatcherGuard guard(self);
             return to_bytes(self.forced_bytes(limit));
           },
           nb::arg("limit"))
      .def("only_token",
           [](Matcher& self, nb::handle remaining) -> nb::object {
             const uint32_t budget = token_budget(remaining);
             const MatcherGuard guard(self);
             const int64_t token = self.only_token(budget);
             if (token < 0) return nb::none();
             return nb::int_(token);
           },
           nb::kw_only(), nb::arg("remaining") = nb::none());

  m.def("fill_bitmasks", &fill_bitmasks, nb::arg("matchers"), nb::arg("bitmask"),
        nb::arg("first_row") = 0, nb::arg("remaining") = nb::none(), nb::arg("threads") = 0);
  m.def("safe_cut",
        [](const BoundVocabulary& vocabulary, nb::bytes text) {
          return safe_cut(vocabulary.core->trie(), {text.c_str(), text.size()});
        },
        nb::arg("vocabulary"), nb::arg("text"));
}

}  // namespace constrain::bind
