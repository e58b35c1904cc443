// Executes a grammar program, and calls the machines of the programs that it embeds.
//
// A configuration is a set of items: a state with the obligation that it is under (together a
// *key*), and the set of stacks above which it stands.  Where a text of an embedded program is read,
// the state is a *place* in it (grammar_foreign.hpp): a config of the embedded machine.  What may follow depends on that set alone,
// so equal sets are one configuration whatever was read before.  Only items that can read a byte
// are kept, beside the answer whether the text may end here; every item of a configuration can be
// completed, hence a configuration without items and without that answer is dead.
//
// Words of a Config: 0: number of items (0xFF: too many, word 1 is the id of a list) and the
// accepting flag; then a key and a stack set per item, in order of keys.  A single place without an
// obligation is the config of the embedded machine itself, with two words more: 12: number of the
// program + 1 (else 0) and the accepting flag, 13: the stacks.  Its steps are those of the embedded
// machine until its text may end, and its lexical units are those of the embedded machine.
//
// Where an embedded text may end, its item returns like the end of a net, and stays while it can read
// more.
//
// A step costs a table look-up where a single item just reads a byte, and else about the number of
// items and calls that it goes through.  Ambiguity cannot blow it up: items with one key are united,
// and unions have a budget (grammar_stacks.hpp).  Nothing recurses on the native stack.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <utility>

#include "constrain/frame_tables.hpp"
#include "constrain/grammar_foreign.hpp"
#include "constrain/grammar_stacks.hpp"
#include "constrain/grammar_tables.hpp"
#include "constrain/grammar_units.hpp"
#include "constrain/lexical_pool.hpp"
#include "constrain/machine.hpp"
#include "constrain/program.hpp"

namespace constrain {

class GrammarMachine final : public Machine {
 public:
  // Throws Error if the program is malformed, UnsatisfiableConstraint if it has no text because a
  // program that it embeds has none.
  GrammarMachine(std::shared_ptr<const Program> program, LexicalPool& pool);

  Config start() override;
  bool step(Config& config, uint8_t byte) override;
  bool accepts(const Config& config) override {
    return (config.w[is_place(config) ? kForeign : 0] & kAccepts) != 0;
  }
  // An item in a unit has a table: a place in a unit of the embedded machine, or a state in one
  // (grammar_units.hpp).  Several items are parts of a union.
  LexicalView lexical(const Config& config) override;
  void parts(const Config& config, std::vector<Config>& out) override;
  bool leave(Config& config, uint32_t outcome) override;
  Config isolated(const Config& config) override;
  bool leave_frame(Config& config) override;
  ByteSet behind_frame(const Config& config) override { return units_.behind(items(config)[0].key); }
  FrameTables* frame_tables() override { return &frames_; }
  bool take_doubt() override { return std::exchange(doubt_, false); }
  void begin_trial() override;
  void end_trial() override;
  bool unsure(const Config& config) const override;
  bool exceptional_bytes(const Config& config, ByteSet& out) override;
  bool live_bytes(const Config& config, ByteSet& out) override;
  size_t bytes() const override;
  std::string describe(const Config& config) override;
  bool complete(const Config& config, std::string& out, size_t limit) override;
  uint32_t most_needed(const Config& config, uint32_t brackets, uint32_t bytes) override;
  uint64_t effort() const override { return searched_ + foreign_.effort(); }

 private:
  using StackId = GrammarStacks::StackId;
  struct Item {
    uint32_t key;
    StackId stacks;
    bool operator==(const Item&) const = default;
    auto operator<=>(const Item&) const = default;
  };
  // Whether an item can meet its obligation with the next byte, whatever its stacks.
  enum class Hope : uint8_t { kUnknown, kMet, kBroken, kOpen };
  struct Pair {
    uint32_t state, obligation;   // obligation: an index into conjunctions_
    Hope hope = Hope::kUnknown;
  };
  struct Pending {
    uint32_t rank, callee, back, obligation;
    StackId stacks;
  };
  // Where a set that is being made has an item.
  struct Slot {
    uint32_t stamp = 0, position = 0;
  };
  static constexpr uint32_t kAccepts = 0x80000000u;
  static constexpr uint32_t kUnsure = 0x40000000u;   // in word 0: see Machine::unsure
  static constexpr uint32_t kMany = 0xFF;
  static constexpr size_t kInline = 5;
  static constexpr size_t kForeign = kEmbeddedWords, kStacks = kEmbeddedWords + 1;   // words

  // The config is a single place.
  static bool is_place(const Config& config) { return config.w[kForeign] != 0; }
  static uint32_t number_of(const Config& config) { return (config.w[kForeign] & ~kAccepts) - 1; }

  // Keys: a state; from states_ on a pair; with kPlaceKey the id of a place.
  static constexpr uint32_t kPlaceKey = 0x80000000u;
  static bool place_key(uint32_t key) { return (key & kPlaceKey) != 0; }
  const Config& place_at(uint32_t key) const { return foreign_.at(key & ~kPlaceKey); }
  uint32_t state_of(uint32_t key) const { return key < states_ ? key : pairs_[key - states_].state; }
  uint32_t obligation_of(uint32_t key) const {
    if (key < states_) return 0;
    return place_key(key) ? place_at(key).w[GrammarForeign::kObligation]
                          : pairs_[key - states_].obligation;
  }
  uint32_t key_of(uint32_t state, uint32_t obligation);
  Slot& slot(uint32_t key);
  // Conjunctions of obligations, as sorted lists; 0 is the empty one.
  uint32_t conjunction(const std::vector<uint32_t>& obligations);
  uint32_t also(uint32_t conjunction, uint32_t obligation);
  uint32_t reduce(uint32_t conjunction, uint8_t byte);   // kNone: broken
  uint32_t reduced(uint32_t conjunction, uint8_t byte);  // the same, without looking it up
  bool ends(uint32_t conjunction) const;

  std::span<const Item> items(const Config& config) const;   // of a config that is no place
  void begin_set();
  void add(uint32_t key, StackId stacks);
  bool was_seen(uint32_t key, StackId stacks);
  bool insert_seen(uint32_t key, StackId stacks);
  void grow_seen();
  void settle(uint32_t at);      // unites what arrived
  void read(std::span<const Item> items, uint8_t byte);
  void read_place(const Item& item, uint8_t byte);
  void end(StackId stacks, uint32_t obligation);   // of a net or an embedded text: returns
  void close();                  // completes items_ by returns, marks and calls; sets accepts_
  void call_out();
  bool keep();                   // items_ to kept_: what reads; false: nothing is left
  Hope hope(uint32_t key);
  bool resolves(Item item);      // something valid lies behind an item under an obligation
  Config pack();
  bool has_unit(const Item& item);
  bool finish(Config& config);   // close, keep and pack; false: dead
  // Of a place whose machine has just moved: returns, if its text may end.
  bool settle_place(Config& config);

  std::string describe_token(Config config);   // behind the first byte of a special token
  using Distances = std::unordered_map<StackId, uint32_t>;
  struct WayOut {
    Item item;
    uint32_t length;
    std::string begun;
  };
  std::vector<WayOut> ways_out(const Config& config, size_t limit, Distances& known);
  bool walk_out(const Config& config, const WayOut& way, Distances& known, std::string& out,
                size_t limit);
  bool search_out(const Config& config, std::string& out, size_t limit);
  void measure();
  uint32_t way_out(const Config& config, Distances& known);
  void find_rises(uint32_t brackets, uint32_t bytes);
  uint64_t most_below(StackId stacks);
  uint32_t stack_distance(StackId stacks, Distances& known);

  // By state what the bytes of a token can add to a completion; empty: no bound is known.
  std::vector<int64_t> rises_;
  int64_t returned_rise_ = 0;   // the same behind a return
  bool rises_known_ = false;
  uint64_t searched_ = 0;       // steps of search_out
  std::unordered_map<StackId, uint64_t> most_below_;

  GrammarForeign foreign_;
  GrammarTables tables_;
  GrammarUnits units_;
  FrameTables frames_;
  uint32_t states_;
  GrammarStacks stacks_;

  std::vector<Pair> pairs_;
  std::unordered_map<uint64_t, uint32_t> pair_ids_;
  std::vector<std::vector<uint32_t>> conjunctions_;
  std::unordered_map<uint64_t, uint32_t> also_;
  std::vector<std::array<uint32_t, 256>> reduced_;   // by conjunction; kUnset: not yet known

  // The set in the making: items_ in order of arrival, position_[key] valid if its stamp is now's.
  // Every set of stacks that arrives at a key is followed once; they are united at the end: united
  // one by one they would be followed again and again, and leave as many sets behind.
  struct Arrival {
    uint32_t at;                 // position of the item
    StackId stacks;
    uint32_t next;               // the arrival at the item before this one; kNone: none
  };
  struct Seen {
    uint32_t stamp = 0, key = 0;
    StackId stacks = 0;
  };
  std::vector<Arrival> arrivals_;
  std::vector<uint32_t> arrived_;      // per position: the last of its list
  std::vector<uint8_t> long_list_;     // per position: its arrivals are in seen_
  std::vector<StackId> unite_;
  uint32_t union_budget_;
  std::vector<Seen> seen_;
  std::vector<Item> items_, kept_;
  std::vector<Slot> slots_, place_slots_;   // by key, by place
  uint32_t now_ = 0;
  std::vector<uint32_t> todo_;   // arrivals whose returns and marks are to be followed
  std::vector<Pending> pending_;
  bool accepts_ = false;
  bool unsure_ = false;
  bool doubt_ = false;           // a text ended under an obligation, which a caller would go on with

  // Lists of items that do not fit into a Config, interned like stacks.
  struct List {
    uint32_t begin, count, hash;
  };
  uint32_t list_id(std::span<const Item> items);
  void rehash_lists();
  std::vector<Item> list_items_;
  std::vector<List> lists_;
  std::vector<uint32_t> list_slots_;
  bool trial_ = false;
  size_t trial_lists_ = 0, trial_items_ = 0;
};

}  // namespace constrain
