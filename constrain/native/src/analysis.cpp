#include "constrain/analysis.hpp"

#include <unordered_map>

#include "constrain/errors.hpp"

namespace constrain {

namespace {
constexpr size_t kSteps = 600;
}  // namespace

Analyzer::Analyzer(std::shared_ptr<const Program> program, size_t max_memory)
    : text_(program->text), max_memory_(max_memory) {
  // The machine refuses a root that nothing satisfies; questions bring their own root.  Examples
  // are written without whitespace and in any order.
  auto copy = std::make_shared<Program>(*program);
  copy->root = Formulas::kTrue;
  copy->whitespace = Whitespace::kCompact;
  copy->declared_order = false;
  program_ = std::move(copy);
  make();
}

void Analyzer::make() {
  machine_.reset();
  pool_ = std::make_unique<LexicalPool>();
  machine_ = std::make_unique<JsonMachine>(program_, *pool_);
  // There are many questions, none of which must be answered.
  machine_->theory().set_max_steps(kSteps);
}

size_t Analyzer::bytes() const {
  return machine_ ? machine_->bytes() + pool_->bytes() : 0;
}

// An exception leaves a search half done, so everything is made anew before the next question.
template <class Fn>
auto Analyzer::ask(Fn fn) -> decltype(fn()) {
  constexpr size_t kBetweenChecks = 32;  // adding up the pool takes a while
  if (!machine_ || (++questions_ % kBetweenChecks == 0 && bytes() > max_memory_)) make();
  try {
    return fn();
  } catch (...) {
    machine_.reset();
    throw;
  }
}

Formula Analyzer::formula(const Clauses& clauses) {
  const auto count = static_cast<int32_t>(program_->nodes.size() / 3);
  JsonTheory& theory = machine_->theory();
  std::vector<Formula> all;
  for (const auto& clause : clauses) {
    std::vector<Formula> any;
    for (const int32_t literal : clause) {
      const int32_t node = literal < 0 ? ~literal : literal;
      if (node >= count) throw Error("no such node: " + std::to_string(node));
      const Formula f = theory.node(node);
      any.push_back(literal < 0 ? theory.negate(f) : f);
    }
    all.push_back(theory.any_of(any));
  }
  return theory.all_of(all);
}

std::optional<bool> Analyzer::satisfiable(const Clauses& clauses) {
  return ask([&]() -> std::optional<bool> {
    JsonTheory& theory = machine_->theory();
    const Formula f = formula(clauses);
    if (text_) return pool_->live(theory.string_language(f));
    const size_t before = theory.unproved();
    const bool yes = theory.satisfiable(f);
    if (yes && theory.unproved() != before) return std::nullopt;
    return yes;
  });
}

std::optional<bool> Analyzer::strings_are_finite(const Clauses& clauses) {
  return ask([&]() -> std::optional<bool> {
    const LexId start = machine_->theory().string_language(formula(clauses));
    // A live language is never empty, so a cycle among live languages is a text of any length.
    constexpr size_t kStates = 20000;
    struct Frame {
      LexId id;
      std::vector<uint32_t> points;
      size_t next = 0;
    };
    if (!pool_->live(start)) return true;
    std::unordered_map<LexId, bool> open;  // false: done
    std::vector<Frame> path;
    size_t steps = 0;
    const auto enter = [&](LexId id) {
      open[id] = true;
      path.push_back({id, pool_->representatives(id)});
    };
    enter(start);
    while (!path.empty()) {
      Frame& frame = path.back();
      if (frame.id == LexicalPool::kAnything) return false;
      if (frame.next == frame.points.size()) {
        open[frame.id] = false;
        path.pop_back();
        continue;
      }
      if (++steps > kStates) return std::nullopt;
      const LexId next = pool_->advance(frame.id, frame.points[frame.next++]);
      if (next == LexicalPool::kNothing) continue;
      const auto known = open.find(next);
      if (known == open.end()) enter(next);
      else if (known->second) return false;
    }
    return true;
  });
}

std::optional<std::string> Analyzer::example(const Clauses& clauses, size_t limit) {
  return ask([&]() -> std::optional<std::string> {
    const Formula f = formula(clauses);
    if (!machine_->theory().satisfiable(f)) return std::nullopt;
    std::string text;
    if (!machine_->complete(machine_->start_at(f), text, limit)) return std::nullopt;
    if (text.size() > limit) return std::nullopt;
    return text;
  });
}

}  // namespace constrain
