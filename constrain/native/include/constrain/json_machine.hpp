// The JSON machine: runs a schema on bytes.
//
// A configuration is a mode (what is being read), the registers of that mode, and a stack of open
// objects and arrays.  Stack nodes are interned, so pushing the same frame on the same parent gives
// the same node; in a trial they are merely appended and forgotten afterwards.
//
// An object frame is fast where one conjunctive table decides everything (bits of the names seen,
// a count, the set of other keys seen); else it is general and carries residual formulas.  Arrays
// are always general: their residuals recur.
//
// A surface (json_surface.hpp) changes how values are written, not what they mean: other brackets,
// quotes and words lead to the same frames.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "constrain/json_surface.hpp"
#include "constrain/json_theory.hpp"
#include "constrain/machine.hpp"

namespace constrain {

class JsonMachine final : public Machine {
 public:
  // Throws UnsatisfiableConstraint if no value satisfies the program.
  JsonMachine(std::shared_ptr<const Program> program, LexicalPool& pool);

  // Without a root: programs with these options can be added, and start_at() begins one.
  JsonMachine(const Program& options, LexicalPool& pool);
  // What the texts of a program satisfy; kFalse: it has none.
  Formula add(std::shared_ptr<const Program> program);

  Config start() override { return start_at(root_); }
  // Before a value that must satisfy `goal`.
  Config start_at(Formula goal);
  bool step(Config& config, uint8_t byte) override;
  bool accepts(const Config& config) override;
  LexicalView lexical(const Config& config) override;
  bool leave(Config& config, uint32_t outcome) override;
  void begin_trial() override;
  void end_trial() override;
  bool unsure(const Config& config) const override;
  bool live_bytes(const Config& config, ByteSet& out) override;
  bool exceptional_bytes(const Config& config, ByteSet& out) override;
  uint32_t gap(const Config& config) const override;
  size_t bytes() const override;
  std::string describe(const Config& config) override;
  bool complete(const Config& config, std::string& out, size_t limit) override;
  uint32_t most_needed(const Config& config, uint32_t brackets, uint32_t bytes) override;
  uint64_t effort() const override { return theory_.effort() + pool_.effort(); }

  JsonTheory& theory() { return theory_; }

 private:
  enum class Mode : uint8_t {
    kValue, kLiteral, kNumber, kString, kArrayStart, kArrayNext, kKeyOrEnd, kKey, kFastKey,
    kGeneralKey, kColon, kObjectNext, kDone,
    // Of surfaces: a fixed text, a name of the value's type, the space before a tail, a string that
    // may also be another value, several readings of one text.
    kScript, kHole, kTail, kStringOr, kReadings,
  };
  enum class Kind : uint32_t { kFastObject, kObject, kObjectMember, kArray, kArrayItem };
  // What a, b, c, d, e hold per kind:
  //   kFastObject    table, bits of names seen, other keys seen, members counted, next rank
  //   kObject        formula, tracked formulas, keys seen, members captured + 1, -
  //   kObjectMember  residual, tracked, keys seen, members captured + 1, list (variables, key)
  //   kArray         formula, tracked, values seen + 1, items captured + 1, -
  //   kArrayItem     residual, tracked, values seen + 1, items captured + 1, variables
  struct StackNode {
    uint32_t parent = 0;
    Kind kind = Kind::kFastObject;
    uint32_t a = 0, b = 0, c = 0, d = 0, e = 0;
    TextId key = 0;   // of the member being read, for surfaces that write it again behind the value
  };

  static constexpr uint32_t kCapture = 1u << 8;      // the value being read is wanted
  static constexpr uint32_t kTextUnknown = 1u << 9;  // after leave(): some text was not seen
  static constexpr uint32_t kUnsure = 1u << 10;      // and it has come to matter
  static constexpr uint32_t kNoString = 1u << 11;    // the value being begun is no string
  static constexpr uint32_t kSpaceShift = 16;
  static constexpr uint32_t kSpaceMask = kGapCounts;

  static Mode mode(const Config& c) { return Mode(c.w[0] & 0xFF); }
  static void set_mode(Config& c, Mode m, uint32_t flags = 0) {
    c.w[0] = uint32_t(m) | flags | (c.w[0] & (kTextUnknown | kUnsure));
    for (size_t i = 2; i < kEmbeddedWords; ++i) c.w[i] = 0;
  }
  bool space(Config& c, uint8_t byte) const;
  // A blank must come before anything else.
  bool wants_blank(const Config& c) const;

  const StackNode& node(uint32_t id) const {
    return id & kTrialBit ? trial_nodes_[id & ~kTrialBit] : nodes_[id];
  }
  uint32_t push(const StackNode& n);

  bool structure(Config& c, uint8_t byte);
  bool begin_value(Config& c, uint8_t byte);
  bool begin_literal(Config& c, uint32_t spelling);
  bool begin_number(Config& c, uint8_t byte);
  bool begin_string(Config& c, uint32_t unit);
  bool end_number(Config& c);
  bool step_literal(Config& c, uint8_t byte);
  bool step_number(Config& c, uint8_t byte);
  bool step_string(Config& c, uint8_t byte);
  bool begin_object(Config& c, Formula goal, uint32_t variables, bool capture);
  bool begin_array(Config& c, Formula goal, uint32_t variables, bool capture);
  bool next_item(Config& c);
  bool begin_key(Config& c, uint32_t unit);
  bool more_keys(const StackNode& n);
  LexId others_left(const Config& c);
  bool step_fast_key(Config& c, uint8_t byte);
  bool step_general_key(Config& c, uint8_t byte);
  bool close_fast_other(Config& c, uint32_t outcome, TextId text, bool text_known);
  bool close_general(Config& c, KeyClass key, TextId text, bool text_known);
  bool close_object(Config& c);
  bool close_array(Config& c);
  // Ends the value that stands above the stack's top; `truth` answers the frame's variables.
  bool end_value(Config& c, std::span<const uint32_t> truth, bool captured, ValueId value);

  // ---- surfaces
  bool step_spelled(Config& c, uint8_t byte);
  bool is_bare(const Config& c) const;   // the frame on top has no brackets
  bool root_frame(const Config& c) const { return c.w[1] != 0 && node(c.w[1]).parent == 0; }
  bool begin_spelled(Config& c, uint8_t byte);
  bool begin_text_value(Config& c, uint8_t byte);
  bool begin_other(Config& c, uint8_t byte, bool strings);
  bool begin_spelled_key(Config& c, uint8_t byte);
  bool begin_bare(Config& c, uint8_t byte);
  bool next_bare(Config& c, uint8_t byte);
  bool other_possible(const Config& c);
  void after_value(Config& c);
  bool after_string(Config& c, uint32_t unit);
  bool after_key(Config& c);
  bool begin_script(Config& c, Writing::Script script);
  bool settle(Config& c);
  bool finish_script(Config& c);
  const std::string& script_text(const Config& c) const;
  uint32_t hole_choices(const Config& c, bool type);
  Formula hole_goal(Formula goal, bool type, uint32_t choice);
  bool step_script(Config& c, uint8_t byte);
  bool step_hole(Config& c, uint8_t byte);
  bool step_tail(Config& c, uint8_t byte);
  bool step_readings(Config& c, uint8_t byte);
  void readings(const Config& c, std::vector<Config>& out) const;
  bool combine(Config& c, std::vector<Config>& alive);
  bool other_unit(const Config& c, uint32_t unit) const;
  uint32_t keep(Config c);
  bool accepts_spelled(const Config& c);
  bool spelled_bytes(const Config& c, ByteSet& out);
  bool finish_spelled(Config& c, std::string& out, size_t limit);
  bool feed_spelled_value(Config& c, std::string& out);
  bool feed_spelled_type(Config& c, Type type, std::string& out);
  std::string key_end(const Config& c) const;
  std::string describe_spelled(const Config& c);

  // Which names of a fast object may come next.
  struct Rules {
    bool only_required = false;              // the members left are all spoken for
    uint32_t first = 0, last = UINT32_MAX;   // ranks, under declared order
    bool others = true;                      // keys without a name may come
  };
  Rules rules(const ObjectTable& t, const StackNode& n) const;
  bool name_open(const ObjectTable& t, const StackNode& n, uint32_t index, const Rules& r) const;
  bool range_open(const ObjectTable& t, const StackNode& n, uint32_t low, uint32_t high,
                  const Rules& r) const;
  LexId fast_others(ObjectTable& t, const StackNode& n, const Rules& r);
  bool name_admitted(const ObjectTable& t, const StackNode& n, uint32_t trie_node, uint32_t decoder,
                     const Rules& r) const;
  // Keys of a general object, in declared order where that is possible.
  LexId general_keys(const StackNode& n);
  bool name_begins(const ObjectTable& t, uint32_t trie_node, uint32_t decoder) const;
  LexicalView base_view(LexId goal, uint32_t tracked, uint32_t decoder);
  void add_members(StringSet members, uint32_t unit, ByteSet& out) const;
  void add_names(const ObjectTable& t, uint32_t trie_node, uint32_t unit, ByteSet& out) const;

  bool finish(Config& c, std::string& out, size_t limit);
  bool feed_value(Config& c, std::string& out);
  bool feed_type(Config& c, Type type, std::string& out);
  bool feed_item(Config& c, const char* comma, std::string& out);
  bool feed_key(Config& c, std::string& out);
  bool feed_string_end(Config& c, std::string& out);
  JsonTheory::Cost plan_value(Config& c);
  Formula frame_formula(const StackNode& n);
  static uint32_t frame_seen(const StackNode& n);
  bool feed(Config& c, std::string_view text, std::string& out);

  // Bounds on what completions write (json_reserve.cpp); UINT64_MAX: none is known.
  struct Reserves {
    uint64_t frame = 0;   // of any object or array that may be opened
    uint64_t unit = 0;    // of any string, number, literal or key, and of the whole value
  };
  const Reserves& reserves(uint64_t key, const StackNode* bottom, Formula goal);
  uint64_t frame_reserve(const StackNode& n);
  uint64_t table_reserve(uint32_t table);
  uint64_t items_reserve(Formula f);
  uint64_t stack_reserve(uint32_t id);

  LexicalPool& pool_;
  JsonTheory theory_;
  Whitespace whitespace_;
  bool plain_numbers_;
  bool declared_order_;
  uint32_t string_unit_;   // the decoder at the start of strings and keys
  std::unique_ptr<const Writing> surface_;   // null: JSON
  Formula root_ = Formulas::kFalse;
  uint32_t any_object_ = 0;  // the table that says nothing

  FlatMap others_left_;
  std::unordered_map<uint64_t, Reserves> reserves_;
  std::unordered_map<uint32_t, uint64_t> table_reserves_, items_reserves_, stack_reserves_;

  static constexpr uint32_t kTrialBit = 1u << 31;
  std::vector<StackNode> nodes_;
  IdSet node_set_;
  bool trial_ = false;
  std::vector<StackNode> trial_nodes_;
  static constexpr size_t kFirstReading = 6, kMostReadings = 6;   // words of a config
  std::vector<Config> configs_{1}, trial_configs_{1};   // other readings; 0: none
  IdSet config_set_;
  uint32_t reading_depth_ = 0;   // of completions of several readings
  mutable std::string key_text_;   // scratch
  NumberPool::Mark mark_;
};

// Brackets and what stands between values, in JSON.
inline bool JsonMachine::structure(Config& c, uint8_t byte) {
  switch (mode(c)) {
    case Mode::kValue: return begin_value(c, byte);
    case Mode::kArrayStart:
      if (byte == ']') return close_array(c);
      return next_item(c) && begin_value(c, byte);
    case Mode::kArrayNext:
      if (byte == ']') return close_array(c);
      return byte == ',' && next_item(c);
    case Mode::kKeyOrEnd:
      if (byte == '}') return close_object(c);
      return byte == '"' && begin_key(c, string_unit_);
    case Mode::kKey: return byte == '"' && begin_key(c, string_unit_);
    case Mode::kColon: {
      if (byte != ':') return false;
      const uint32_t goal = c.w[2], variables = c.w[3], capture = c.w[0] & kCapture;
      set_mode(c, Mode::kValue, capture);
      c.w[2] = goal;
      c.w[3] = variables;
      return true;
    }
    case Mode::kObjectNext:
      if (byte == '}') return close_object(c);
      if (byte != ',' || !more_keys(node(c.w[1]))) return false;
      set_mode(c, Mode::kKey);
      return true;
    default: return false;  // kDone
  }
}

}  // namespace constrain
