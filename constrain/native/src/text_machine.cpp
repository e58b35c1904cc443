#include "constrain/text_machine.hpp"

#include "constrain/errors.hpp"
#include "constrain/grammar_machine.hpp"
#include "constrain/json_machine.hpp"
#include "constrain/machines.hpp"

namespace constrain {

TextMachine::TextMachine(std::shared_ptr<const Program> program, LexicalPool& pool) : pool_(pool) {
  JsonTheory theory(program->plain_numbers, pool);
  language_ = theory.string_language(theory.add(std::move(program)));
  if (!pool.live(language_)) throw UnsatisfiableConstraint("no text matches");
}

// Words: 0 goal, 1 decoder.
Config TextMachine::start() {
  Config c;
  c.w[0] = language_;
  c.w[1] = LexicalPool::kRaw;
  return c;
}

bool TextMachine::step(Config& c, uint8_t byte) {
  LexCursor cursor{c.w[0], 0, c.w[1]};
  uint32_t outcome;
  if (pool_.step(cursor, byte, outcome) != LexStep::kInside) return false;
  c.w[0] = cursor.goal;
  c.w[1] = cursor.decoder;
  return true;
}

bool TextMachine::accepts(const Config& c) {
  return c.w[1] == LexicalPool::kRaw && pool_.accepts(c.w[0]);
}

LexicalView TextMachine::lexical(const Config& c) {
  LexicalView v;
  v.cursor.goal = pool_.without_sets(c.w[0]);
  v.present = v.cursor.goal != LexicalPool::kNothing;
  v.exceptional = v.present && v.cursor.goal != c.w[0];
  v.cursor.decoder = c.w[1];
  return v;
}

bool TextMachine::live_bytes(const Config& c, ByteSet& out) {
  return pool_.without_sets(c.w[0]) == LexicalPool::kNothing && exceptional_bytes(c, out);
}

bool TextMachine::exceptional_bytes(const Config& c, ByteSet& out) {
  if (c.w[1] != LexicalPool::kRaw) return false;
  out = {};
  for (const auto& [code_point, rest] : pool_.sets().children(pool_.union_of_sets(c.w[0]))) {
    add_first_byte(out, code_point);
  }
  return true;
}

std::string TextMachine::describe(const Config& c) {
  return accepts(c) ? "more of the text or its end" : "more of the text, which may not end here";
}

bool TextMachine::complete(const Config& c, std::string& out, size_t limit) {
  std::string text;
  if (!pool_.finish(c.w[0], c.w[1], text) || text.size() > limit) return false;
  out += text;
  return true;
}

std::unique_ptr<Machine> make_machine(std::shared_ptr<const Program> program, LexicalPool& pool) {
  if (program->grammar) return std::make_unique<GrammarMachine>(std::move(program), pool);
  if (program->text) return std::make_unique<TextMachine>(std::move(program), pool);
  return std::make_unique<JsonMachine>(std::move(program), pool);
}

}  // namespace constrain
