// Reading values that are not written as JSON.
#include "constrain/json_surface.hpp"

#include <algorithm>

#include "constrain/errors.hpp"
#include "constrain/json_machine.hpp"

namespace constrain {

namespace {

using PieceKind = Surface::Piece::Kind;
constexpr const char* kCdataBegin = "<![CDATA[";
constexpr const char* kCdataEnd = "]]>";
constexpr const char* kTypeNames[6] = {"null", "boolean", "number", "string", "array", "object"};
constexpr const char* kStringNames[2] = {"false", "true"};

// The bytes of a special token's id may look like blanks.
void strip_end(std::string& text) {
  const size_t special = text.rfind('\xFF');
  const size_t keep = special == std::string::npos ? 0 : special + 4;
  while (text.size() > keep && is_blank(uint8_t(text.back()))) text.pop_back();
}

void strip(std::string& text) {
  strip_end(text);
  size_t n = 0;
  while (n < text.size() && is_blank(uint8_t(text[n]))) ++n;
  text.erase(0, n);
}

// What is behind the byte or character that ends a unit with this stop.
std::string behind_stop(const std::string& stop) {
  const size_t special = stop.find('\xFF');
  return special == std::string::npos ? "" : stop.substr(special + 1);
}

void drop_empty(std::vector<Surface::Piece>& pieces) {
  std::erase_if(pieces, [](const auto& p) { return p.kind == PieceKind::kText && p.text.empty(); });
}

}  // namespace

Writing::Writing(const Surface& surface, Whitespace whitespace, LexicalPool& pool)
    : outer(surface.outer),
      inner(surface.inner),
      python_words(surface.python_words),
      cdata(surface.cdata),
      quote(surface.quote) {
  const auto text = [](std::string t) { return Piece{PieceKind::kText, std::move(t)}; };
  bare = surface.members != Surface::Members::kBraces;
  nested = surface.members == Surface::Members::kNested;
  if (inner == Strings::kUntilQuote) {
    if (bare || quote.empty()) throw Error("surface: quotes of its own need brackets and a quote");
    bare_keys = true;
    key_unit = pool.raw_until(":");
    quote_unit = pool.raw_until(quote);
    scripts[kQuote] = {text(quote)};
    scripts[kAfterQuote] = {text(behind_stop(quote))};
  }
  single_unit = pool.raw_until("'");
  double_unit = pool.raw_until("\"");
  if (!bare) {
    drop_empty(scripts[kAfterQuote]);
    return;
  }
  if (surface.between.empty() || surface.between[0].kind != PieceKind::kText ||
      surface.between[0].text.empty())
    throw Error("surface: a text must follow the key");
  const uint8_t end = uint8_t(surface.between[0].text[0]);
  if (end >= 0x80 && end != 0xFF) throw Error("surface: an ASCII character must follow the key");
  key_unit = pool.raw_until(std::string_view(surface.between[0].text).substr(0, 1));
  scripts[kHead] = {text(surface.head)};
  scripts[kBetween] = surface.between;
  scripts[kBetween][0].text.erase(0, 1);
  std::string separator = surface.separator;
  std::vector<Piece> tail = surface.tail;
  if (whitespace != Whitespace::kCompact) {
    strip(separator);
    if (!tail.empty() && tail.back().kind == PieceKind::kText) strip_end(tail.back().text);
  }
  scripts[kSeparator] = {text(separator)};
  for (const Piece& p : tail) key_again |= p.kind == PieceKind::kKey;
  if (outer == Strings::kUntilTail) {
    if (tail.empty() || tail[0].kind != PieceKind::kText || tail[0].text.empty())
      throw Error("surface: a text must follow a raw value");
    const std::string stop = tail[0].text;
    tail_unit = pool.raw_until(stop);
    scripts[kAfterString] = tail;
    scripts[kAfterString][0].text = behind_stop(stop);
    if (cdata) {
      cdata_unit = pool.raw_until(kCdataEnd + stop);
      scripts[kAfterCdata] = scripts[kAfterString];
      scripts[kCdata] = {text(kCdataBegin)};
      // The regex program of any text that begins so.
      std::vector<int32_t> begin{1, 0, 0, 1, 0, 0x10FFFF};
      const std::string_view word = kCdataBegin;
      for (const char ch : word) begin.insert(begin.end(), {1, ch, ch});
      begin[1] = int32_t(word.size()) + 1;
      begin[2] = int32_t(word.size()) + 3;
      for (int32_t set = 0; set <= int32_t(word.size()); ++set) begin.insert(begin.end(), {1, set});
      begin.insert(begin.end(), {4, 0, 0, -1, 2, int32_t(word.size()) + 1});
      for (int32_t n = 1; n <= int32_t(word.size()); ++n) begin.push_back(n);
      begin.push_back(int32_t(word.size()) + 1);
      raw_texts = pool.until(pool.both(pool.negate(pool.regex(begin)), pool.free_of(tail_unit)), tail_unit);
    }
  }
  if (!tail.empty() && tail[0].kind == PieceKind::kText) {
    size_t n = 0;
    while (n < tail[0].text.size() && is_blank(uint8_t(tail[0].text[n]))) ++n;
    lead = tail[0].text.substr(0, n);
    tail[0].text.erase(0, n);
  }
  scripts[kWholeTail] = tail;
  if (nested) {
    if (!lead.empty() || !separator.empty() || tail.empty())
      throw Error("surface: nested members have a tail and no separator");
    std::string begin = surface.head + "item";
    for (const Piece& p : surface.between) {
      if (p.kind != PieceKind::kText) throw Error("surface: nested members do not name types");
      begin += p.text;
    }
    scripts[kItem] = {text(begin)};
    if (key_again) item = pool.text(std::string_view("item"));
  }
  for (auto& script : scripts) drop_empty(script);
}

// ------------------------------------------------------------------ frames

bool JsonMachine::is_bare(const Config& c) const {
  return surface_->bare && c.w[1] != 0 && (surface_->nested || node(c.w[1]).parent == 0);
}

void JsonMachine::after_value(Config& c) {
  if (is_bare(c) && !surface_->scripts[Writing::kWholeTail].empty()) set_mode(c, Mode::kTail);
}

// A string has ended: one up to a text has read the beginning of that.
bool JsonMachine::after_string(Config& c, uint32_t unit) {
  if ((unit & LexicalPool::kRaw) == 0) return true;
  if (surface_->inner == Writing::Strings::kUntilQuote)
    return begin_script(c, Writing::kAfterQuote);
  if (surface_->outer != Writing::Strings::kUntilTail) return true;
  const bool cdata = surface_->cdata && pool_.same_end(unit, surface_->cdata_unit);
  return begin_script(c, cdata ? Writing::kAfterCdata : Writing::kAfterString);
}

// A key has ended; the config is that before a colon.
bool JsonMachine::after_key(Config& c) {
  if (is_bare(c)) return begin_script(c, Writing::kBetween);
  if (!surface_->bare_keys) return true;
  const uint32_t goal = c.w[2], variables = c.w[3];
  set_mode(c, Mode::kValue, c.w[0] & kCapture);
  c.w[2] = goal;
  c.w[3] = variables;
  return true;
}

// ------------------------------------------------------------------ fixed texts
// Words: 2 goal, 3 variables, 4 script and number of the piece << 8, 5 position in the piece (of a
// hole: the names that are possible and the position << 16).

bool JsonMachine::begin_script(Config& c, Writing::Script script) {
  const uint32_t goal = c.w[2], variables = c.w[3];
  set_mode(c, Mode::kScript, c.w[0] & kCapture);
  c.w[2] = goal;
  c.w[3] = variables;
  c.w[4] = script;
  return settle(c);
}

bool JsonMachine::settle(Config& c) {
  const auto& pieces = surface_->scripts[c.w[4] & 0xFF];
  if (c.w[4] >> 8 == pieces.size()) return finish_script(c);
  const PieceKind kind = pieces[c.w[4] >> 8].kind;
  const bool hole = kind == PieceKind::kType || kind == PieceKind::kString;
  c.w[0] = (c.w[0] & ~0xFFu) | uint32_t(hole ? Mode::kHole : Mode::kScript);
  c.w[5] = hole ? hole_choices(c, kind == PieceKind::kType) : 0;
  return !hole || c.w[5] != 0;
}

bool JsonMachine::finish_script(Config& c) {
  const uint32_t goal = c.w[2], variables = c.w[3], capture = c.w[0] & kCapture;
  const auto value = [&] {
    set_mode(c, Mode::kValue, capture);
    c.w[2] = goal;
    c.w[3] = variables;
  };
  switch (Writing::Script(c.w[4] & 0xFF)) {
    case Writing::kHead: return begin_key(c, surface_->key_unit);
    case Writing::kBetween: value(); return true;
    case Writing::kSeparator: set_mode(c, Mode::kKey); return true;
    case Writing::kItem: return next_item(c);
    case Writing::kQuote: return begin_string(c, surface_->quote_unit);
    case Writing::kCdata: return begin_string(c, surface_->cdata_unit);
    default: break;
  }
  // Behind a value.
  if (c.w[1] == 0) {
    set_mode(c, Mode::kDone);
    return true;
  }
  StackNode n = node(c.w[1]);
  if (n.key != 0) {
    n.key = 0;
    c.w[1] = push(n);
  }
  set_mode(c, n.kind == Kind::kArray ? Mode::kArrayNext : Mode::kObjectNext);
  return true;
}

const std::string& JsonMachine::script_text(const Config& c) const {
  const auto& piece = surface_->scripts[c.w[4] & 0xFF][c.w[4] >> 8];
  if (piece.kind != PieceKind::kKey) return piece.text;
  key_text_ = pool_.text_utf8(node(c.w[1]).key);
  return key_text_;
}

bool JsonMachine::step_script(Config& c, uint8_t byte) {
  const std::string& text = script_text(c);
  if (byte != uint8_t(text[c.w[5]])) return false;
  if (++c.w[5] < text.size()) return true;
  c.w[4] += 1u << 8;
  return settle(c);
}

// Which names of types the goal admits, as bits.
uint32_t JsonMachine::hole_choices(const Config& c, bool type) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < (type ? 6u : 2u); ++i)
    if (theory_.satisfiable(hole_goal(c.w[2], type, i))) bits |= 1u << i;
  return bits;
}

Formula JsonMachine::hole_goal(Formula goal, bool type, uint32_t choice) {
  const auto is = [&](Type t) { return theory_.atom(Fop::kType, uint32_t(t)); };
  if (!type) {
    const Formula string = is(Type::kString);
    return theory_.both(goal, choice == 1 ? string : theory_.negate(string));
  }
  switch (choice) {
    case 0: return theory_.both(goal, is(Type::kNull));
    case 1: return theory_.both(goal, theory_.either(is(Type::kTrue), is(Type::kFalse)));
    default: return theory_.both(goal, is(Type(choice + 1)));
  }
}

bool JsonMachine::step_hole(Config& c, uint8_t byte) {
  const auto& piece = surface_->scripts[c.w[4] & 0xFF][c.w[4] >> 8];
  const bool type = piece.kind == PieceKind::kType;
  const uint32_t position = c.w[5] >> 16;
  uint32_t left = 0;
  for (uint32_t i = 0; i < 6; ++i) {
    if ((c.w[5] >> i & 1) == 0) continue;
    const char* name = type ? kTypeNames[i] : kStringNames[i];
    if (uint8_t(name[position]) != byte) continue;
    if (name[position + 1] == 0) {   // no name begins another one
      c.w[2] = hole_goal(c.w[2], type, i);
      c.w[4] += 1u << 8;
      return settle(c);
    }
    left |= 1u << i;
  }
  c.w[5] = left | (position + 1) << 16;
  return left != 0;
}

// Behind a value that is no raw string: whitespace that ends as the tail begins, and the tail.
// Word 2: how much of its leading whitespace the last bytes are.
bool JsonMachine::step_tail(Config& c, uint8_t byte) {
  const std::string& lead = surface_->lead;
  if (!is_blank(byte)) {
    if (c.w[2] != lead.size() || !surface_->begins(Writing::kWholeTail, byte)) return false;
    return begin_script(c, Writing::kWholeTail) && step_spelled(c, byte);
  }
  if (whitespace_ == Whitespace::kCompact) {
    if (c.w[2] == lead.size() || uint8_t(lead[c.w[2]]) != byte) return false;
    ++c.w[2];
    return true;
  }
  if (!space(c, byte)) return false;
  std::string read = lead.substr(0, c.w[2]) + char(byte);
  while (!lead.starts_with(read)) read.erase(0, 1);
  c.w[2] = uint32_t(read.size());
  // There must be room for the rest.
  Config rest = c;
  for (size_t i = read.size(); i < lead.size(); ++i)
    if (!space(rest, uint8_t(lead[i]))) return false;
  return true;
}

// ------------------------------------------------------------------ structure

bool JsonMachine::step_spelled(Config& c, uint8_t byte) {
  switch (mode(c)) {
    case Mode::kString: {
      const uint32_t unit = c.w[4];
      return step_string(c, byte) && (mode(c) == Mode::kString || after_string(c, unit));
    }
    case Mode::kFastKey:
      return step_fast_key(c, byte) && (mode(c) == Mode::kFastKey || after_key(c));
    case Mode::kGeneralKey:
      return step_general_key(c, byte) && (mode(c) == Mode::kGeneralKey || after_key(c));
    case Mode::kNumber: return step_number(c, byte);
    case Mode::kLiteral: return step_literal(c, byte);
    case Mode::kScript: return step_script(c, byte);
    case Mode::kHole: return step_hole(c, byte);
    case Mode::kTail: return step_tail(c, byte);
    case Mode::kStringOr:
    case Mode::kReadings: return step_readings(c, byte);
    default: break;
  }
  const bool bare = is_bare(c);
  if (mode(c) == Mode::kValue && bare && surface_->outer == Writing::Strings::kUntilTail &&
      (c.w[0] & kNoString) == 0)
    return begin_text_value(c, byte);
  // Before the first member of the root nothing stands that belongs to it.
  if (is_blank(byte))
    return !(bare && mode(c) == Mode::kKeyOrEnd && root_frame(c)) && space(c, byte);
  c.w[0] &= ~kSpaceMask;
  if (bare && mode(c) != Mode::kValue) return begin_bare(c, byte);
  switch (mode(c)) {
    case Mode::kValue: return begin_other(c, byte, (c.w[0] & kNoString) == 0);
    case Mode::kArrayStart:
      if (byte == ']') return close_array(c);
      return next_item(c) && begin_other(c, byte, true);
    case Mode::kKeyOrEnd:
      return byte == '}' ? close_object(c) : begin_spelled_key(c, byte);
    case Mode::kKey: return begin_spelled_key(c, byte);
    default: return structure(c, byte);
  }
}

// A key of an object in brackets.
bool JsonMachine::begin_spelled_key(Config& c, uint8_t byte) {
  if (surface_->bare_keys) return begin_key(c, surface_->key_unit) && step_spelled(c, byte);
  if (surface_->inner == Writing::Strings::kPython) {
    return (byte == '\'' && begin_key(c, LexicalPool::kSingleQuoted)) ||
           (byte == '"' && begin_key(c, LexicalPool::kDoubleQuoted));
  }
  return byte == '"' && begin_key(c, string_unit_);
}

// The first byte of a bare member or item, or of what follows the last one.
bool JsonMachine::begin_bare(Config& c, uint8_t byte) {
  const StackNode n = node(c.w[1]);
  const bool array = mode(c) == Mode::kArrayStart || mode(c) == Mode::kArrayNext;
  std::vector<Config> alive;
  const auto begin = [&](Writing::Script script) {
    Config next = c;
    if (!surface_->begins(script, byte)) return;
    next.w[2] = next.w[3] = 0;
    if (begin_script(next, script) && step_spelled(next, byte)) alive.push_back(next);
  };
  if (array) {
    Config item = c;
    if (next_item(item)) begin(Writing::kItem);
  } else if (more_keys(n)) {
    const bool separated = mode(c) == Mode::kObjectNext &&
                           !surface_->scripts[Writing::kSeparator].empty();
    if (separated) {
      begin(Writing::kSeparator);
    } else if (surface_->scripts[Writing::kHead].empty()) {
      Config next = c;
      if (begin_key(next, surface_->key_unit) && step_spelled(next, byte)) alive.push_back(next);
    } else {
      begin(Writing::kHead);
    }
  }
  if (n.parent != 0 && mode(c) != Mode::kKey && surface_->begins(Writing::kWholeTail, byte)) {
    // The end of a nested object or array is the tail of the member that it is.
    Config next = c;
    if ((array ? close_array(next) : close_object(next)) && step_spelled(next, byte))
      alive.push_back(next);
  }
  return combine(c, alive);
}

// ------------------------------------------------------------------ values

bool JsonMachine::other_possible(const Config& c) {
  const Formula string = theory_.atom(Fop::kType, uint32_t(Type::kString));
  return theory_.satisfiable(theory_.both(c.w[2], theory_.negate(string)));
}

// The first byte of a value that is raw text if it is a string.
bool JsonMachine::begin_text_value(Config& c, uint8_t byte) {
  std::vector<Config> alive;
  Config next = c;
  if (begin_string(next, surface_->tail_unit)) {
    if (surface_->cdata) {
      next.w[2] = pool_.both(next.w[2], surface_->raw_texts);
      if (!pool_.live(next.w[2])) next.w[2] = LexicalPool::kNothing;
    }
    if (next.w[2] != LexicalPool::kNothing && step_spelled(next, byte)) alive.push_back(next);
  }
  next = c;
  next.w[0] |= kNoString;
  const bool other = is_blank(byte) ? other_possible(c) && space(next, byte)
                                    : begin_other(next, byte, false);
  if (other) alive.push_back(next);
  if (surface_->cdata && byte == '<' &&
      pool_.live(pool_.until(theory_.string_language(c.w[2]), surface_->cdata_unit))) {
    next = c;
    if (begin_script(next, Writing::kCdata) && step_spelled(next, byte)) alive.push_back(next);
  }
  return combine(c, alive);
}

// The first byte of any other value, whitespace aside; `strings`: or of a string in quotes.
bool JsonMachine::begin_other(Config& c, uint8_t byte, bool strings) {
  const bool bare = is_bare(c), text = bare && surface_->outer == Writing::Strings::kUntilTail;
  const uint32_t capture = c.w[0] & kCapture;
  const bool words = text || surface_->python_words;
  switch (byte) {
    case 'n': return begin_literal(c, 0);
    case 't': return begin_literal(c, 1);
    case 'f': return begin_literal(c, 2);
    case 'N': return words && begin_literal(c, 3);
    case 'T': return words && begin_literal(c, 4);
    case 'F': return words && begin_literal(c, 5);
    default: break;
  }
  if (strings) {
    switch (bare ? surface_->outer : surface_->inner) {
      case Writing::Strings::kJson:
        if (byte == '"') return begin_string(c, string_unit_);
        break;
      case Writing::Strings::kPython:
        if (byte == '\'') return begin_string(c, LexicalPool::kSingleQuoted);
        if (byte == '"') return begin_string(c, LexicalPool::kDoubleQuoted);
        break;
      case Writing::Strings::kUnescaped:
        if (byte == '\'') return begin_string(c, surface_->single_unit);
        if (byte == '"') return begin_string(c, surface_->double_unit);
        break;
      case Writing::Strings::kUntilQuote:
        if (byte != uint8_t(surface_->quote[0])) break;
        return pool_.live(theory_.string_language(c.w[2])) &&
               begin_script(c, Writing::kQuote) && step_spelled(c, byte);
      case Writing::Strings::kUntilTail: break;
    }
  }
  if (!surface_->nested) {
    if (byte == '[') return begin_array(c, theory_.typed(c.w[2], Type::kArray), c.w[3], capture != 0);
    if (byte == '{')
      return begin_object(c, theory_.typed(c.w[2], Type::kObject), c.w[3], capture != 0);
    return begin_number(c, byte);
  }
  std::vector<Config> alive;
  Config next = c;
  if (begin_number(next, byte)) alive.push_back(next);
  next = c;
  if (begin_array(next, theory_.typed(c.w[2], Type::kArray), c.w[3], capture != 0) &&
      begin_bare(next, byte))
    readings(next, alive);
  next = c;
  if (begin_object(next, theory_.typed(c.w[2], Type::kObject), c.w[3], capture != 0) &&
      begin_bare(next, byte))
    readings(next, alive);
  return combine(c, alive);
}

// ------------------------------------------------------------------ several readings
// A config of several readings has the ids of kept configs from word kFirstReading on; that of a
// string and others is itself the string's config otherwise.

uint32_t JsonMachine::keep(Config c) {
  std::fill(c.w.begin() + kEmbeddedWords, c.w.end(), 0u);
  if (trial_) {
    trial_configs_.push_back(c);
    return uint32_t(trial_configs_.size() - 1) | kTrialBit;
  }
  const uint64_t hash = hash_words(c.w.data(), kEmbeddedWords);
  const uint32_t found = config_set_.find(hash, [&](uint32_t id) { return configs_[id] == c; });
  if (found != IdSet::kMissing) return found;
  const auto id = uint32_t(configs_.size());
  configs_.push_back(c);
  config_set_.add(hash, id);
  return id;
}

void JsonMachine::readings(const Config& c, std::vector<Config>& out) const {
  if (mode(c) != Mode::kStringOr && mode(c) != Mode::kReadings) {
    out.push_back(c);
    return;
  }
  if (mode(c) == Mode::kStringOr) {
    Config string = c;
    string.w[0] = (c.w[0] & ~0xFFu) | uint32_t(Mode::kString);
    std::fill_n(string.w.begin() + kFirstReading, kMostReadings, 0u);
    out.push_back(string);
  }
  for (size_t i = kFirstReading; i < kFirstReading + kMostReadings && c.w[i] != 0; ++i) {
    Config other = c.w[i] & kTrialBit ? trial_configs_[c.w[i] & ~kTrialBit] : configs_[c.w[i]];
    std::copy(c.w.begin() + kEmbeddedWords, c.w.end(), other.w.begin() + kEmbeddedWords);
    other.w[0] |= c.w[0] & (kTextUnknown | kUnsure);
    out.push_back(other);
  }
}

bool JsonMachine::combine(Config& c, std::vector<Config>& alive) {
  std::vector<Config> all;
  for (const Config& one : alive) readings(one, all);
  for (size_t i = 0; i < all.size(); ++i)
    all.erase(std::remove(all.begin() + ptrdiff_t(i) + 1, all.end(), all[i]), all.end());
  uint32_t flags = 0;
  for (const Config& one : all) flags |= one.w[0] & (kTextUnknown | kUnsure);
  if (all.empty()) return false;
  if (all.size() == 1) {
    c = all[0];
    return true;
  }
  const auto string = std::find_if(all.begin(), all.end(),
                                   [](const Config& one) { return mode(one) == Mode::kString; });
  Config united = c;
  if (string != all.end()) {
    united = *string;
    all.erase(string);
    united.w[0] = (united.w[0] & ~0xFFu) | uint32_t(Mode::kStringOr);
  } else {
    set_mode(united, Mode::kReadings);
    united.w[1] = 0;
  }
  if (all.size() > kMostReadings) throw LimitError("a text has too many readings", "readings");
  for (size_t i = 0; i < all.size(); ++i) united.w[kFirstReading + i] = keep(all[i]);
  united.w[0] |= flags;
  c = united;
  return true;
}

bool JsonMachine::step_readings(Config& c, uint8_t byte) {
  std::vector<Config> all, alive;
  readings(c, all);
  uint32_t unsure = 0;
  for (Config& one : all) {
    const bool ok = step_spelled(one, byte);
    unsure |= one.w[0] & kUnsure;
    if (ok) alive.push_back(one);
  }
  const bool string = mode(c) == Mode::kStringOr;
  const uint32_t unit = c.w[4];
  const bool ok = combine(c, alive);
  c.w[0] |= unsure;
  if (ok && string && other_unit(c, unit)) {
    // Whoever walks along the string is told: no unit follows another one without a byte between.
    const Config only = c;
    set_mode(c, Mode::kReadings);
    c.w[1] = 0;
    c.w[kFirstReading] = keep(only);
  }
  return ok;
}

// Inside of a unit that ends otherwise than this one.
bool JsonMachine::other_unit(const Config& c, uint32_t unit) const {
  switch (mode(c)) {
    case Mode::kFastKey:
    case Mode::kGeneralKey: return true;
    case Mode::kString:
    case Mode::kStringOr: return !pool_.same_end(c.w[4], unit);
    default: return false;
  }
}

bool JsonMachine::accepts_spelled(const Config& c) {
  switch (mode(c)) {
    case Mode::kKeyOrEnd:
    case Mode::kObjectNext: {
      Config end = c;
      return root_frame(c) && close_object(end);
    }
    case Mode::kNumber: {
      // Only where nothing has to follow a value.
      Config end = c;
      return root_frame(c) && surface_->scripts[Writing::kWholeTail].empty() && end_number(end) &&
             accepts_spelled(end);
    }
    case Mode::kReadings: {
      std::vector<Config> all;
      readings(c, all);
      return std::any_of(all.begin(), all.end(),
                         [&](const Config& one) { return accepts_spelled(one); });
    }
    default: return false;
  }
}

}  // namespace constrain
