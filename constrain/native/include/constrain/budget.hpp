// How many tokens a text still needs, and masks that keep a text within a number of tokens.
//
// A *way* is a completion as tokens: for each state the next token of it, the state behind that,
// and how many tokens are left.  Ways are kept by state and only ever get shorter.
//
// A way is found from the machine's own completion, written with as few tokens as the vocabulary
// can (dynamic programming over the trie), and, where the vocabulary is small or cannot write that
// text at all, by a search over tokens.
//
// A mask keeps the first token of the way of its state, and other tokens only where a completion
// of what is behind them is at hand that fits, as one of these *proofs*:
//
// * of the state behind the token: a way, or a text (a Tail) that was read from it to an end;
// * of a lexical unit and the cursor in it: the text that ends the unit, and the way of the state
//   behind the unit, whatever was written in it;
// * of a token that ends a unit: the way of the state that its remainder leads to from `leave`.
//
// All three can be found again behind the token, from its state, the state before and the token
// (need, inherit), and none of them ever gets longer: whoever was within a budget stays within it.
//
// What a mask costs is bounded: completions, tokens tried one by one and steps of searches are
// counted.  Where the count is spent, tokens without a proof are not kept.
//
// States are interned and machines stepped outside of trials here: equal states are met again and
// again, and what is found about them is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "constrain/lexical_tables.hpp"
#include "constrain/machine.hpp"
#include "constrain/states.hpp"
#include "constrain/trie.hpp"
#include "constrain/util.hpp"
#include "constrain/vocabulary.hpp"

namespace constrain {

// The fewest tokens that spell a text; false: the vocabulary cannot.
bool fewest_tokens(const Trie& trie, std::string_view text, std::vector<uint32_t>& out);

// The text completes the config, whatever is unknown of what was read before.
bool completes(Machine& machine, Config config, std::string_view text);

class Budget {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFu;

  // Of a shard of the vocabulary as it is now.
  Budget(Vocabulary& vocabulary, Shard& shard, Machine& machine, StateTable& states);

  // Tokens up to a valid text, none for a valid text; kNever where no completion is known.
  uint32_t need(StateId state);
  // The same, of a text that is being written: more is tried.
  uint32_t need_here(StateId state);
  // Of the state behind a token: more is tried where that is above `enough`, beginning with what
  // was known where the mask of the state before was made.
  uint32_t need_behind(StateId before, uint32_t token, StateId state, uint32_t enough);
  // Keeps this completion for the state and for those on its way; false: it is none.
  bool record(StateId state, std::span<const uint32_t> tokens);
  // The tokens of that completion; empty where none is needed or known.
  std::vector<uint32_t> way(StateId state);
  // No token can lead to where more bytes are needed than this, each of which is a token; kNever:
  // not known.
  uint32_t bound(StateId state);
  // Clears the tokens of a state's mask after which more than `left` tokens would be needed.
  void keep(StateId state, uint32_t left, uint32_t* row);
  size_t bytes() const;

 private:
  static constexpr uint32_t kNoTail = kNever;
  struct Way {
    uint32_t need = kNever;
    uint32_t token = 0;
    StateId next = kNoState;
    uint32_t tail = kNoTail;   // the way is this text, not yet written as states
    uint32_t worst = kNever;   // what is needed behind any token
    uint32_t bound = kUnasked; // the machine's bound on that, in bytes
    uint32_t asked = 0;        // the machine was asked for completions of so many bytes
    bool improved = false;     // looked ahead from here
    bool searched = false;     // all that is tried was tried
    bool last = false;         // also the search that is left where nothing is known
    bool exact = false;        // nothing shorter exists
  };
  // Tokens that stay inside a unit, by the cursor behind them.
  struct Group {
    LexCursor cursor;
    std::vector<uint32_t> tokens;
  };
  struct GroupKey {
    LexCursor cursor;
    uint32_t node;
    bool operator==(const GroupKey&) const = default;
  };
  struct CursorHash {
    size_t operator()(const LexCursor& c) const {
      const uint32_t words[3] = {c.goal, c.tracked, c.decoder};
      return hash_words(words, 3);
    }
    size_t operator()(const GroupKey& k) const { return (*this)(k.cursor) * 31 + k.node; }
  };
  struct Tail {
    std::string text;
    std::vector<uint32_t> tokens;
  };
  // How a unit ends soonest from a cursor.
  struct End {
    LexStep step = LexStep::kDead;
    uint32_t outcome = 0;
    uint32_t tokens = 0;   // of its text alone
    std::string text;
  };

  static constexpr uint32_t kUnasked = kNever - 1;
  Way& at(StateId state);
  StateId behind(StateId state, uint32_t token);
  void find(StateId state, size_t longest);
  void find_plain(StateId state, size_t longest);
  void from_unit(StateId state);
  void improve(StateId start);
  // The tail of this text; kNoTail: the vocabulary cannot spell it.
  uint32_t tail(std::string text);
  // Tries a tail on a state; false: it is no completion, or not a shorter one.
  bool offer(StateId state, uint32_t tail);
  void tried(uint32_t tail);   // with success
  // Writes the state's tail as states.
  void settle(StateId state);
  void inherit(StateId before, uint32_t token, StateId state);
  void search(StateId state, size_t steps);
  // Calls visit(node, config) for each trie node with tokens that the machine can read from here.
  template <class Visit>
  void walk(const Config& from, Visit visit);
  const End& end_of(const LexCursor& cursor);

  // -- masks.  All of the following belong to one call of keep.
  // Whether at most left_ tokens are needed from here; kUnknown: the text of a unit matters.
  enum class Verdict : uint8_t { kFits, kLong, kUnknown };
  Verdict judge(const Config& config);
  // The tail completes the config; counts what is read.
  bool ends(const Config& config, const Tail& tail);
  bool fits(const Config& config) { return judge(config) == Verdict::kFits; }
  void note(uint32_t need) { most_ = need > most_ ? need : most_; }
  void drop(uint32_t token);
  // Regions of grammars end anywhere and lead to few states, and numbers end where JSON goes on:
  // their tokens are walked.
  bool in_unit(const LexicalView& view) const {
    NumberPlace place;
    return view.present && stepper_.region(view.cursor) == nullptr &&
           !stepper_.number(view.cursor, place);
  }
  void judge_node(uint32_t node, const Config& config);
  void judge_token(uint32_t token);
  void keep_walk(const Config& config, uint32_t node);
  void keep_unit(const Config& config, const LexicalView& view, uint32_t node);
  void keep_inside(const Config& config, const LexCursor& cursor, uint32_t node);
  void keep_exceptional(const Config& config, uint32_t node);
  void keep_remainders(const Config& config, const Remainders& remainders);
  void judge_remainders(const Remainders& remainders, uint32_t node, const Config& config);
  void try_remainders(const Remainders& remainders, uint32_t node);
  // What is needed from inside the unit of `config` at this cursor, whatever its text; kNever: that
  // depends on the text, or is not known.
  uint32_t unit_need(const Config& config, const LexCursor& cursor);
  // The tail of an end and the way behind it, if it was ever joined.
  uint32_t& joined(StateId behind, const std::string& end);
  uint32_t join(StateId behind, const std::string& end);
  const std::vector<Group>& groups(const LexCursor& cursor, uint32_t node);

  // A search over tokens is worth its steps where it can be complete.
  static constexpr uint32_t kSmallTrie = 4000;   // nodes

  Vocabulary& vocabulary_;
  const Trie& trie_;
  LexicalStepper& stepper_;
  LexicalTables& tables_;
  Machine& machine_;
  StateTable& states_;
  std::vector<Way> ways_;       // by state
  std::vector<Tail> tails_;
  std::unordered_map<std::string, uint32_t> tail_ids_;
  std::vector<uint32_t> recent_;   // tails found or of use last, for trying
  size_t walked_ = 0;              // steps of walk
  std::unordered_map<LexCursor, End, CursorHash> ends_;
  std::unordered_map<std::string, uint32_t> joined_;   // by state and end
  size_t text_bytes_ = 0;          // of all texts above

  Config start_;
  uint32_t left_ = 0, most_ = 0;
  bool dropped_ = false;
  // What this mask may still spend.
  size_t completions_ = 0, reads_ = 0, steps_ = 0;
  uint64_t effort_ = 0;
  uint32_t* row_ = nullptr;
  std::vector<uint32_t> before_;   // the row as it was
  std::unordered_map<GroupKey, std::vector<Group>, CursorHash> groups_;
  size_t group_tokens_ = 0;
};

}  // namespace constrain
