// Drives the number languages from standard input, one command a line, one answer a line.
//
//   pool plain|any                        a fresh pool
//   def FORMULA                           prints its id; FORMULA in prefix notation, see below
//   read GOAL CAPTURE N TRACKED*N TEXT    dead AT | alive COMPLETE ACCEPTS BITS VALUE COMPLETION
//   walk GOAL LENGTH ALPHABET             every alive text up to LENGTH: TEXT:ACCEPTS ...
//   cursor GOAL CAPTURE N TRACKED*N TEXT  phase and digits of the cursor
//   sat ID | holds ID VALUE | enum ID CAP | bytes | mark | release
//   decimal TEXT                          canonical text, is_integer, exponent | error
//   compare A B
//
// FORMULA: true | false | int | lex | min X STRICT | max X STRICT | mult X | in N X*N | not F |
// and N F*N | or N F*N | one N F*N
#include <cstdint>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "constrain/decimal.hpp"
#include "constrain/errors.hpp"
#include "constrain/numbers.hpp"

using constrain::Decimal;
using constrain::NumberCursor;
using constrain::NumberId;
using constrain::NumberPool;
using constrain::NumberValue;

namespace {

NumberValue read_value(NumberPool& pool, std::istream& in) {
  std::string text;
  in >> text;
  return pool.value(Decimal::parse(text));
}

NumberId read_formula(NumberPool& pool, std::istream& in) {
  std::string op;
  in >> op;
  if (op == "true") return constrain::kAnyNumber;
  if (op == "false") return constrain::kNoNumber;
  if (op == "int") return pool.integer();
  if (op == "lex") return pool.integer_lexical();
  if (op == "min" || op == "max") {
    const NumberValue value = read_value(pool, in);
    bool strict = false;
    in >> strict;
    return op == "min" ? pool.minimum(value, strict) : pool.maximum(value, strict);
  }
  if (op == "mult") return pool.multiple_of(read_value(pool, in));
  if (op == "not") return pool.lnot(read_formula(pool, in));
  size_t count = 0;
  in >> count;
  if (op == "in") {
    std::vector<NumberValue> values;
    for (size_t i = 0; i < count; ++i) values.push_back(read_value(pool, in));
    return pool.one_of(values);
  }
  std::vector<NumberId> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(read_formula(pool, in));
  if (op == "and") return pool.land(parts);
  if (op == "or") return pool.lor(parts);
  if (op == "one") return pool.exactly_one(parts);
  throw constrain::Error("unknown operator " + op);
}

struct Question {
  NumberId goal = 0;
  bool capture = false;
  std::vector<NumberId> tracked;
};

Question read_question(std::istream& in) {
  Question q;
  size_t count = 0;
  in >> q.goal >> q.capture >> count;
  q.tracked.resize(count);
  for (NumberId& id : q.tracked) in >> id;
  return q;
}

// The number of bytes read before the cursor died, or the length of the text.
size_t feed(NumberPool& pool, const Question& q, const std::string& text, NumberCursor& cursor) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool alive = i == 0 ? pool.start(q.goal, q.tracked, q.capture, byte, cursor)
                              : pool.step(q.goal, q.tracked, q.capture, cursor, byte);
    if (!alive) return i;
  }
  return text.size();
}

void answer_read(NumberPool& pool, std::istream& in) {
  const Question q = read_question(in);
  std::string text;
  in >> text;
  NumberCursor cursor;
  const size_t at = feed(pool, q, text, cursor);
  if (at < text.size()) {
    std::cout << "dead " << at << '\n';
    return;
  }
  const bool accepts = pool.accepts(q.goal, cursor);
  std::string tracked = "-";
  std::string value = "-";
  if (accepts) {
    for (const NumberId id : q.tracked) tracked += pool.holds_at_end(id, cursor) ? '1' : '0';
    if (q.capture) value = pool.decimal(pool.captured(cursor)).to_string();
  }
  std::string completion;
  const bool completed = pool.complete_text(q.goal, q.tracked, q.capture, cursor, completion);
  std::cout << "alive " << pool.complete(cursor) << ' ' << accepts << ' ' << tracked << ' ' << value
            << ' ' << (completed ? "=" + completion : "none") << '\n';
}

void answer_walk(NumberPool& pool, std::istream& in) {
  NumberId goal = 0;
  size_t length = 0;
  std::string alphabet;
  in >> goal >> length >> alphabet;
  struct Node {
    std::string text;
    NumberCursor cursor;
  };
  std::vector<Node> todo{{}};
  while (!todo.empty()) {
    const Node node = todo.back();
    todo.pop_back();
    for (const char c : alphabet) {
      Node next = node;
      next.text.push_back(c);
      const auto byte = static_cast<uint8_t>(c);
      const bool alive = node.text.empty() ? pool.start(goal, {}, false, byte, next.cursor)
                                           : pool.step(goal, {}, false, next.cursor, byte);
      if (!alive) continue;
      std::cout << next.text << ':' << pool.accepts(goal, next.cursor) << ' ';
      if (next.text.size() < length) todo.push_back(next);
    }
  }
  std::cout << '\n';
}

}  // namespace

int main() {
  auto pool = std::make_unique<NumberPool>(true);
  NumberPool::Mark mark;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    try {
      if (command == "pool") {
        std::string kind;
        in >> kind;
        pool = std::make_unique<NumberPool>(kind == "plain");
        std::cout << "ok\n";
      } else if (command == "def") {
        std::cout << read_formula(*pool, in) << '\n';
      } else if (command == "read") {
        answer_read(*pool, in);
      } else if (command == "walk") {
        answer_walk(*pool, in);
      } else if (command == "cursor") {
        const Question q = read_question(in);
        std::string text;
        in >> text;
        NumberCursor cursor;
        const size_t at = feed(*pool, q, text, cursor);
        if (at < text.size()) std::cout << "dead " << at << '\n';
        else std::cout << cursor.phase << ' ' << cursor.digits << '\n';
      } else if (command == "sat") {
        NumberId id = 0;
        in >> id;
        std::cout << pool->satisfiable(id) << '\n';
      } else if (command == "holds") {
        NumberId id = 0;
        in >> id;
        std::cout << pool->holds(id, read_value(*pool, in)) << '\n';
      } else if (command == "enum") {
        NumberId id = 0;
        size_t cap = 0;
        in >> id >> cap;
        std::vector<NumberValue> values;
        if (!pool->enumerate(id, cap, values)) {
          std::cout << "no\n";
        } else {
          std::cout << "yes";
          for (const NumberValue v : values) std::cout << ' ' << pool->decimal(v).to_string();
          std::cout << '\n';
        }
      } else if (command == "bytes") {
        std::cout << pool->bytes() << '\n';
      } else if (command == "mark") {
        mark = pool->mark();
        std::cout << "ok\n";
      } else if (command == "release") {
        pool->release(mark);
        std::cout << "ok\n";
      } else if (command == "decimal") {
        std::string text;
        in >> text;
        const Decimal d = Decimal::parse(text);
        std::cout << d.to_string() << ' ' << d.is_integer() << ' ' << d.exponent() << '\n';
      } else if (command == "compare") {
        std::string a;
        std::string b;
        in >> a >> b;
        std::cout << Decimal::parse(a).compare(Decimal::parse(b)) << '\n';
      } else {
        std::cout << "error unknown command\n";
      }
    } catch (const constrain::LimitError& error) {
      std::cout << "limit " << error.limit << '\n';
    } catch (const constrain::UnsupportedFeature& error) {
      std::cout << "unsupported\n";
    } catch (const constrain::Error& error) {
      std::cout << "error " << error.what() << '\n';
    }
    std::cout.flush();
  }
  return 0;
}
