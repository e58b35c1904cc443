// The machine interface: what mask filling knows of a machine, and no more.
//
// A machine executes a program on bytes.  `Config` is a plain value that the mask walk copies
// freely and steps without interning anything that is only tried; `commit` turns a config that is
// kept into a 32-bit id, equal configs having equal ids within the machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "constrain/byte_set.hpp"
#include "constrain/gap.hpp"

namespace constrain {

using StateId = uint32_t;
inline constexpr StateId kNoState = 0xFFFFFFFFu;

// Words of a configuration; their meaning belongs to the machine.  Two configs are the same state
// if and only if all words are equal.  A machine that can be embedded in another one leaves the
// words from kEmbeddedWords on alone: there the outer machine keeps what it needs.
inline constexpr size_t kEmbeddedWords = 12;
struct Config {
  std::array<uint32_t, kEmbeddedWords + 2> w{};
  bool operator==(const Config&) const = default;
};

// A position inside a lexical unit (a string, say) without any structure around it.  The ids
// belong to the vocabulary's LexicalPool, so that all schemas of a vocabulary share tables.
struct LexCursor {
  uint32_t goal = 0;      // language that the unit must belong to
  uint32_t tracked = 0;   // id of a list of languages whose truth is wanted when the unit ends
  uint32_t decoder = 0;   // escape or UTF-8 sequence in progress, and the kind of unit
  uint32_t context = 0;   // what may follow the unit: kJson or kAnyText
  static constexpr uint32_t kJson = 0;      // what continues a JSON text, and no more
  static constexpr uint32_t kAnyText = 1;
  bool operator==(const LexCursor&) const = default;
};

enum class LexStep : uint8_t {
  kDead,       // no unit continues like this
  kInside,     // still inside the unit
  kEnd,        // this byte was the last one of the unit (a closing quote)
};

// Where a config stands lexically.  When `present`, what the mask may do instead of stepping the
// machine from this config through the whole trie is: take the table of `cursor` (tokens that stay
// inside; tokens that end the unit, by what remains of them), and walk the remainders from
// `leave(config, outcome)`.  When `exceptional`, finitely many texts behave differently from what
// the table says (declared keys, values seen already): the mask walks the trie with the machine's
// own `step` for as long as the stepped config is still exceptional in a present unit, and what it
// finds there overrides the table; where a stepped config is present and not exceptional any more,
// the table is right about everything below.
//
// A config may be a union of others (a grammar's stacks): its texts are theirs together.  When
// `split`, it is not in one unit itself, but some of its parts() are in units.
//
// When `framed`, what the config does until it leaves its frame depends on `frame` alone (the state
// of a grammar's net, say, whatever it returns to), and a table of that is kept with the machine.
struct LexicalView {
  bool present = false;
  bool exceptional = false;
  bool split = false;
  bool framed = false;
  LexCursor cursor;
  uint32_t frame = 0;
};

class FrameTables;

class Machine {
 public:
  virtual ~Machine() = default;
  virtual Config start() = 0;
  // Consumes one byte; false: no valid text continues like this (config is then unspecified).
  virtual bool step(Config& config, uint8_t byte) = 0;
  // The bytes so far are a valid text.
  virtual bool accepts(const Config& config) = 0;
  virtual LexicalView lexical(const Config& config) = 0;
  // Of a config whose view is split: appends configs that it is the union of.
  virtual void parts(const Config&, std::vector<Config>&) {}
  // Of a config whose view is framed: the same place in a frame that returns to the end of the text,
  // so that accepts() means that the frame can be left; the config behind the frame (false: dead);
  // a superset of the bytes that can follow the frame; and where tables of frames are kept.
  virtual Config isolated(const Config& config) { return config; }
  virtual bool leave_frame(Config&) { return false; }
  virtual ByteSet behind_frame(const Config&) { return {}; }
  virtual FrameTables* frame_tables() { return nullptr; }
  // Whether a frame was left, since the last call, in a way that accepts() does not say.
  virtual bool take_doubt() { return false; }
  // From a config inside a unit to the config just behind the unit's last byte, for a unit that
  // ended unexceptionally with this outcome (bit i: the i-th tracked language holds).  False: dead.
  virtual bool leave(Config& config, uint32_t outcome) = 0;
  // Between these two calls configs are only tried: what the machine allocates for them may be
  // forgotten at the end, so no config made in between may be kept.
  virtual void begin_trial() {}
  virtual void end_trial() {}
  // True of a config reached through leave() where the text of the unit, which leave() does not
  // know, has come to matter: the token must be tried by stepping from the start.  Stays true of
  // what is stepped from there.  Also asked of a config whose step has failed, which may be
  // because of the unknown text.
  virtual bool unsure(const Config&) const { return false; }
  // Fills `out` with a superset of the bytes on which step can succeed; false: nothing is known.
  virtual bool live_bytes(const Config&, ByteSet&) { return false; }
  // Of an exceptional config in a present unit: fills `out` with a superset of the bytes behind
  // which the table of its unit may be wrong.  False: nothing is known.
  virtual bool exceptional_bytes(const Config&, ByteSet&) { return false; }
  // The gap of JSON text that the config stands in (gap.hpp), or kNoGap: the blanks that it reads
  // are those which the gap admits, and what follows does not depend on them.
  virtual uint32_t gap(const Config&) const { return kNoGap; }
  // Bytes held by everything that grows.
  virtual size_t bytes() const = 0;
  // What may come next here, for error messages: "a string, a number or '}'".
  virtual std::string describe(const Config& config) = 0;
  // A bound on the bytes that complete() appends from any config which this one becomes by reading
  // at most so many bytes, which open at most so many brackets; 0xFFFFFFFF: none is known.  The two
  // numbers are the same in all calls.
  virtual uint32_t most_needed(const Config&, uint32_t brackets, uint32_t bytes) {
    return static_cast<void>(brackets), static_cast<void>(bytes), 0xFFFFFFFFu;
  }
  // A short completion: appends bytes that lead to an accepting config; false if none was found
  // within the budget.
  virtual bool complete(const Config& config, std::string& out, size_t limit) = 0;
  // Steps of all searches so far, for callers that bound them.
  virtual uint64_t effort() const { return 0; }
};

// Code points that some languages cannot tell apart form a class; a class is a union of intervals.
struct CharClasses {
  static constexpr uint32_t kNoCodePoint = 0xFFFFFFFFu;
  std::vector<uint32_t> starts;            // sorted first code points of the intervals
  std::vector<uint32_t> classes;           // class of each interval
  std::vector<uint32_t> representatives;   // of each class; kNoCodePoint: only surrogates in it
};

struct CodePointRange {
  uint32_t low, high;
};

// Cursors at character boundaries, read by characters.  What the bytes of a token mean as
// characters does not depend on the language, so tables can be made of what tokens with equal
// classes of characters have in common.
class CharacterStepper {
 public:
  virtual ~CharacterStepper() = default;
  static constexpr uint32_t kNoClasses = 0xFFFFFFFFu;
  // Number of the classes that goal and tracked languages of the cursor respect, now and after any
  // text; kNoClasses if that is not known.  Equal classes have equal numbers.
  virtual uint32_t classes_of(const LexCursor& cursor) = 0;
  virtual const CharClasses& classes(uint32_t number) const = 0;
  // The decoder is at a character boundary.
  virtual bool at_boundary(uint32_t decoder) const = 0;
  // Steps the decoder alone: kEnd for the last byte of a unit; else `code_point` is the one
  // completed by this byte, or kNoCodePoint inside a character.
  virtual LexStep decode_byte(uint32_t& decoder, uint8_t byte, uint32_t& code_point) const = 0;
  // What the decoder, inside a character, can still become: the number of ranges.
  virtual size_t reachable(uint32_t decoder, CodePointRange out[3]) const = 0;
  // From boundary to boundary; false: dead.
  virtual bool take(LexCursor& cursor, uint32_t code_point) = 0;
  // The unit may go on and end in any way, with the outcome that ends() gives here.
  virtual bool anything(const LexCursor& cursor) const = 0;
  // Whatever follows, the unit can still go on and end: known by its form, so false means nothing.
  virtual bool lasting(const LexCursor& cursor) const = 0;
  // The unit may end here.
  virtual bool ends(const LexCursor& cursor, uint32_t& outcome) = 0;
};

class ByteRegion;

// A position in a number; the ids belong to the stepper.
struct NumberPlace {
  bool plain = false;
  bool digits_only = false;   // see LexicalStepper::number
  uint32_t goal = 0, phase = 0, digits = 0;
};

// The lexical automata of a vocabulary.  Cursors are stepped without interning.
class LexicalStepper {
 public:
  virtual ~LexicalStepper() = default;
  // kEnd sets `outcome`.
  virtual LexStep step(LexCursor& cursor, uint8_t byte, uint32_t& outcome) = 0;
  // Appends the fewest bytes that end the unit here, as far as is known.  kEnd: with its last byte,
  // and sets `outcome`; kInside: the unit ends with the text; kDead: none are known.
  virtual LexStep finish(const LexCursor&, std::string&, uint32_t&) { return LexStep::kDead; }
  // A bound on how many bytes finish appends at any cursor that is reached from this one without
  // ending the unit; 0xFFFFFFFF: none is known.
  virtual uint32_t farthest(const LexCursor&) { return 0xFFFFFFFFu; }
  // A cursor that most constraints will come to.
  virtual LexCursor common() const { return {}; }
  // A cursor that no token tells from this one.
  virtual LexCursor like(const LexCursor& cursor) { return cursor; }
  // The same by characters, or null.
  virtual CharacterStepper* by_characters() { return nullptr; }
  // The region of a byte automaton that the cursor stands in, at the state `cursor.tracked`; null for
  // any other unit.  Such a cursor is not stepped; outcomes are states of the region.
  virtual const ByteRegion* region(const LexCursor&) const { return nullptr; }
  // Numbers.  They end before a byte that JSON has behind a value; the outcome is 0.  False: the
  // cursor stands in no number.  `digits_only`: any digits may follow, and the number may end behind
  // each of them, or, where `digits` is 0, at once; what follows a point or an exponent is not known, and is found by the machine.
  virtual bool number(const LexCursor&, NumberPlace&) const { return false; }
  virtual bool step_number(NumberPlace&, uint8_t) { return false; }
  virtual bool number_ends(const NumberPlace&) { return false; }
  // How many bytes a token has at most, and how many digits follow each other in one.
  virtual void set_token_lengths(uint32_t bytes, uint32_t digits) {
    static_cast<void>(bytes), static_cast<void>(digits);
  }
};

}  // namespace constrain
