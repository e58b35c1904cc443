// Which bytes may matter next, so that a mask looks at few children of a node.
#include "constrain/json_machine.hpp"

namespace constrain {
namespace {
// What a code point may be written with first, in a string of this kind.
void add_written(ByteSet& out, uint32_t code_point, uint32_t unit) {
  const bool plain = unit == LexicalPool::kPlainJson;
  const bool must = (plain || unit == LexicalPool::kJson) && LexicalPool::needs_escape(code_point);
  if (!must) add_first_byte(out, code_point);
  if ((unit & LexicalPool::kRaw) == 0 && (must || !plain)) add_byte(out, '\\');
}
}  // namespace

// Next bytes of the members of a set, escapes included, and the end of the unit behind one.
void JsonMachine::add_members(StringSet members, uint32_t unit, ByteSet& out) const {
  for (const auto& [code_point, rest] : pool_.sets().children(members))
    add_written(out, code_point, unit);
  if (pool_.sets().has_empty(members)) add_byte(out, uint8_t(pool_.terminator(unit)[0]));
}

void JsonMachine::add_names(const ObjectTable& t, uint32_t trie_node, uint32_t unit,
                            ByteSet& out) const {
  if (trie_node == kNoName) return;
  const auto& at = t.trie[trie_node];
  for (uint32_t k = at.first_child; k < at.first_child + at.children; ++k)
    add_written(out, t.trie[k].code_point, unit);
  if (at.name != kNoName) add_byte(out, uint8_t(pool_.terminator(unit)[0]));
}

bool JsonMachine::live_bytes(const Config& c, ByteSet& out) {
  out = {};
  switch (mode(c)) {
    case Mode::kString:
    case Mode::kGeneralKey: {
      const uint32_t decoder = mode(c) == Mode::kString ? c.w[4] : c.w[5];
      if (!LexicalPool::between(decoder)) return false;
      if (pool_.without_sets(c.w[2]) != LexicalPool::kNothing) return false;
      add_members(pool_.union_of_sets(c.w[2]), decoder, out);
      return true;
    }
    case Mode::kFastKey:
      if (!LexicalPool::between(c.w[5])) return false;
      if (pool_.without_sets(c.w[3]) != LexicalPool::kNothing) return false;
      add_members(pool_.union_of_sets(c.w[3]), c.w[5], out);
      add_names(theory_.table(node(c.w[1]).a), c.w[2], c.w[5], out);
      return true;
    case Mode::kLiteral: return false;
    default: break;
  }
  if (surface_) return spelled_bytes(c, out);
  switch (mode(c)) {
    case Mode::kNumber: add_bytes(out, "0123456789.eE+- \n\r\t,]}"); return true;
    default: break;
  }
  if (wants_blank(c)) {
    add_byte(out, ' ');
    return true;
  }
  if (whitespace_ < Whitespace::kCompact) add_bytes(out, " \n\r\t");
  switch (mode(c)) {
    case Mode::kArrayStart: add_byte(out, ']'); [[fallthrough]];
    case Mode::kValue: add_bytes(out, "\"[{-0123456789tfn"); break;
    case Mode::kArrayNext: add_bytes(out, ",]"); break;
    case Mode::kKeyOrEnd: add_byte(out, '}'); [[fallthrough]];
    case Mode::kKey: add_byte(out, '"'); break;
    case Mode::kColon: add_byte(out, ':'); break;
    case Mode::kObjectNext: add_bytes(out, ",}"); break;
    default: break;  // kDone
  }
  return true;
}

uint32_t JsonMachine::gap(const Config& c) const {
  // Blanks may belong to a value, or to what follows one.
  if (surface_) return kNoGap;
  switch (mode(c)) {
    case Mode::kValue:
    case Mode::kArrayStart:
    case Mode::kArrayNext:
    case Mode::kKeyOrEnd:
    case Mode::kKey:
    case Mode::kColon:
    case Mode::kObjectNext: break;
    default: return kNoGap;
  }
  if (whitespace_ != Whitespace::kAny && whitespace_ != Whitespace::kBounded) return kNoGap;
  return kGap | (whitespace_ == Whitespace::kAny ? kEndlessGap : c.w[0] & kSpaceMask);
}

bool JsonMachine::exceptional_bytes(const Config& c, ByteSet& out) {
  out = {};
  LexId goal = c.w[2];
  uint32_t tracked = c.w[3], decoder = c.w[5];
  switch (mode(c)) {
    case Mode::kStringOr: {
      std::vector<Config> all;
      readings(c, all);
      for (size_t i = 1; i < all.size(); ++i) {
        ByteSet own;
        if (!live_bytes(all[i], own)) return false;
        for (size_t k = 0; k < out.size(); ++k) out[k] |= own[k];
      }
      decoder = c.w[4];
      break;
    }
    case Mode::kString: decoder = c.w[4]; break;
    case Mode::kGeneralKey: add_members(c.w[7], decoder, out); break;
    case Mode::kFastKey:
      goal = c.w[3];
      tracked = c.w[4];
      add_members(c.w[7], decoder, out);
      add_names(theory_.table(node(c.w[1]).a), c.w[2], c.w[5], out);
      break;
    default: return false;
  }
  if (!LexicalPool::between(decoder)) return false;
  add_members(pool_.union_of_sets(goal), decoder, out);
  if (tracked != 0) {
    for (const LexId t : pool_.list_copy(tracked)) add_members(pool_.union_of_sets(t), decoder, out);
  }
  return true;
}

bool JsonMachine::spelled_bytes(const Config& c, ByteSet& out) {
  const Writing& s = *surface_;
  const bool bare = is_bare(c);
  switch (mode(c)) {
    case Mode::kScript: add_byte(out, uint8_t(script_text(c)[c.w[5]])); return true;
    case Mode::kHole: add_bytes(out, "abcdefghijklmnopqrstuvwxyz"); return true;
    case Mode::kStringOr:
    case Mode::kReadings: {
      std::vector<Config> all;
      readings(c, all);
      for (const Config& one : all) {
        ByteSet own;
        if (!live_bytes(one, own)) return false;
        for (size_t k = 0; k < out.size(); ++k) out[k] |= own[k];
      }
      return true;
    }
    case Mode::kValue:
      if (bare && s.outer == Writing::Strings::kUntilTail && (c.w[0] & kNoString) == 0 &&
          pool_.live(theory_.string_language(c.w[2])))
        return false;
      break;
    case Mode::kKeyOrEnd:
    case Mode::kKey:
      if (bare ? s.scripts[Writing::kHead].empty() : s.bare_keys) return false;
      break;
    default: break;
  }
  if (whitespace_ != Whitespace::kCompact || mode(c) == Mode::kTail) add_bytes(out, " \n\r\t");
  if (bare) {
    for (const Writing::Script script :
         {Writing::kHead, Writing::kSeparator, Writing::kItem, Writing::kWholeTail})
      add_bytes(out, s.first(script));
    add_bytes(out, std::string_view(s.lead).substr(0, 1));
    if (mode(c) == Mode::kObjectNext && s.scripts[Writing::kSeparator].empty() &&
        s.scripts[Writing::kHead].empty())
      return false;
  }
  switch (mode(c)) {
    case Mode::kNumber: add_bytes(out, "0123456789.eE+-,]}"); break;
    case Mode::kArrayStart: add_byte(out, ']'); [[fallthrough]];
    case Mode::kValue:
      add_bytes(out, "\"'[{-0123456789tfnTFN<");
      add_bytes(out, std::string_view(s.quote).substr(0, 1));
      break;
    case Mode::kArrayNext: add_bytes(out, ",]"); break;
    case Mode::kKeyOrEnd: add_byte(out, '}'); [[fallthrough]];
    case Mode::kKey: add_bytes(out, "\"'"); break;
    case Mode::kColon: add_byte(out, ':'); break;
    case Mode::kObjectNext: add_bytes(out, ",}"); break;
    default: break;
  }
  return true;
}

}  // namespace constrain
